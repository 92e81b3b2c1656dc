"""The console: pages about a catalog, made on the server from what its own API answers to the visitor.

application  `Console`: pages are made in threads beside the event loop; errors as pages; headers of all answers
screens      one module for each group of screens, and the table of all of them
requests     what a request asks for, and whether a form is one of the console's own
pages        templates, and their filters
visits       `Visit`, what a screen gets: the catalog as its visitor, query and form; what a screen gives; links
pictures     vectors as lines
sessions     sign-in: credentials in cookies, and tokens against forged forms
files        the style sheet and scripts, by their content

A module imports only modules below it in this list. Screens and templates hold no rules of the catalog: what they show
is data that `namespace_client` makes, for notebooks and terminals as well.
"""
