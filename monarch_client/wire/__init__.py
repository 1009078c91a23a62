"""The answers of REST as dataclasses, for the portal and for its clients.

Readers return them, OpenAPI describes them, the client decodes them.

A field is declared here and nowhere else. The standard library and msgspec's annotations suffice;
`jobs.api.answers` writes these classes as JSON and `rest.decoding` reads them. A field that is
added to an answer gets a default, so that a client still reads a portal that lacks the field. The
default serves decoding alone: the portal sets every field.
"""
