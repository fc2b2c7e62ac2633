"""`groupstorm report`: runs, comparisons, sweeps and imports as one page, as pictures, or as Markdown."""
