"""The handler: requests from the network, and answers to it.

server       listening, limits, starting and stopping     address      what a path means
handler         one request, from its bytes to its answer     query        what the parameters say
objects      the verbs on objects                          streams      watches
answers      documents and errors as bytes                 virtual      what is no object: reviews, discovery, health
lasting      answers without an end, and their ends        metrics      what is counted
warnings     what a client should know besides             limits       what may be asked for
"""
