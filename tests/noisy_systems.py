"""Random references and noisy translations, for tests of scores."""

import numpy as np

WORDS = ["the", "small", "dog", "runs", "park.", "a", "man", "sleeps,", "Hund", "groß", "42", '"quoted"']


def corpus(seed=0, num_sentences=64, noise=(0.4, 0.3)):
    """References, and the outputs of two systems in which a share of the words is replaced."""
    random = np.random.default_rng(seed)
    references = [random.choice(WORDS, size=random.integers(1, 14)).tolist() for _ in range(num_sentences)]
    systems = [
        [
            " ".join(str(random.choice(WORDS)) if random.random() < share else word for word in line)
            for line in references
        ]
        for share in noise
    ]
    return [" ".join(line) for line in references], *systems
