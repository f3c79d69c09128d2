"""One failing example for each error code: a test, a page of the docs, and what `tilelab explain` prints."""
