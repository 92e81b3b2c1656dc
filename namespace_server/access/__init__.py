"""Who may do what: the model of grants, without I/O. It knows no catalog, no HTTP and no storage.

subjects       privileges, principals and roles, and the subjects that requests are judged for
grants         the rows that grant: privileges on objects, memberships of roles, the switch
requirements   what a caller must be allowed for each operation that a route serves
visible_names  the names below a namespace that grants of one grantee lead to, as a persistent index
policy         the grants of one snapshot of a catalog, and the judgement of a subject by them

A catalog without the switch has no policy: everybody may do everything, and nothing is looked up.
"""
