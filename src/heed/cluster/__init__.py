"""Work on corpora that outgrow one machine, with Ray: files are cut into parts, which workers compute separately."""
