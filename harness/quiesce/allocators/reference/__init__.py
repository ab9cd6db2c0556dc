"""The reference: the trusted implementation, plain Python from the standard library, readable as a specification.

Bottom to top: ``ledger`` and ``heap`` know nothing of each other; ``backing`` puts a capacity above both;
``captures`` and ``streams`` order work; ``pool``, ``pinned_pool``, ``staging``, ``launcher``, ``tape`` and
``lifecycle`` are the components under study; ``parts`` names them; ``machine`` drives them operation by operation.
``museum`` replaces one component at a time by a historic bug.
"""
