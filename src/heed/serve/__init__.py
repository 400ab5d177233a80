"""How is a trained model served: the HTTP APIs that clients already speak, and one search for all of them?"""
