"""The web console on a secure port: logins, sessions, files and live data.

    sessions    logins that are redeemed once, and sessions
    paths       /console/login, /console/link and the files; which requests a session may make
    live        /console/data/live: server-sent events

The API server (`apiserver.http.handler`) and the secure port of the scheduler (`serving.server`) use the same code.
Each authorizes the requests with its own authorizer.
"""
