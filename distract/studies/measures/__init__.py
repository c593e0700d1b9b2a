"""The measures of all studies: trials, the table of measures, their figures, and what derives from them."""
