"""Any language model as a lossless compressor: what it finds likely takes few bits.

| file           | answers                                                        |
|----------------|----------------------------------------------------------------|
| transcript.py  | How do bytes become tokens, so that they come back exactly?    |
| coder.py       | How do tokens and their probabilities become bits?             |
| lockstep.py    | How does the model see the same on both sides?                 |
| container.py   | What does a file say about itself?                             |
| codec.py       | All of it together                                             |
"""
