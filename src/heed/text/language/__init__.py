"""Languages and scripts: codes and names, identification, and which scripts write no spaces between words."""
