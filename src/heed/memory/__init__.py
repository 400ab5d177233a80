"""Translation memories: corrections and other translations by people, which are used again and learned from.

| file        | contents                                                         |
|-------------|------------------------------------------------------------------|
| store.py    | the SQLite file: adding units, exact and near matches            |
| review.py   | units that look wrong: spam, contradictions                      |
| shared.py   | the memory of a server                                           |
| tmx.py      | writing a memory as TMX, for other programs                      |
"""
