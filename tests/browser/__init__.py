"""Tests of the pages in a browser, a package so that one browser serves it and ends with it."""
