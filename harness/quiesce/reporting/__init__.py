"""Reporting: writers that take results and write them. They run nothing, judge nothing and import no pytest."""
