"""How does a text or a file with a form become its translation, the form kept?"""
