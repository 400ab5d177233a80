"""Translation of whole texts and files: plain text, HTML, subtitles, tables, translation memories."""
