"""Translation memories: corrections and other translations by people, which are used again and learned from.

| file        | contents                                                         |
|-------------|------------------------------------------------------------------|
| store.py    | the SQLite file: adding units, exact and near matches            |
| related.py  | retrieval of related sentences                                   |
| domain.py   | whether a text is more like some texts or like others            |
| review.py   | units that look wrong: spam, contradictions                      |
| shared.py   | the memory of a server                                           |
| tmx.py      | writing a memory as TMX, for other programs                      |
"""
