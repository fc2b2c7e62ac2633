"""Tools for the builders of groupstorm; `./dev` runs them. A wheel has none of them."""
