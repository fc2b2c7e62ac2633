"""The site: pages of docs/ and of the presets, and a playground that runs storms in the browser."""
