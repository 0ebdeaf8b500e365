"""The binding cycle: assumed pods, Permit, PreBind and Bind."""
