"""The catalog for agents: an MCP server (Model Context Protocol) whose tools are requests to a catalog.

http      `AgentApplication`: the tools over streamable HTTP, beside the routes of a server
stdio     `serve_stdio`: the tools over standard input and output
server    `AgentServer`: the server of the SDK, and calls of tools in threads
tools     what the tools do, what they take and what they answer
failures  errors of the catalog as results of tools

It stands on `namespace_client`: a tool can do what a client of the HTTP API can, in the name of its caller. A module
imports only modules below it in this list.
"""
