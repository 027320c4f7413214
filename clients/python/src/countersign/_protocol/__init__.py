"""The parts of the protocol that need no cryptography: strict JSON, pointers, and the forms of signed claims."""
