"""The binding cycle: Permit, PreBind and Bind (`cycle`), and pods that are not confirmed yet (`assumed_pods`)."""
