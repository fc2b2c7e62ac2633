"""Tables and diagrams of docs/ that are made from the code; tests hold the pages to them."""
