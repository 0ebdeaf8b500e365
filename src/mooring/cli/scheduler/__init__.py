"""`mooring scheduler`: the scheduler as a standalone component, with the flags of kube-scheduler.

command         the click command, with every flag of kube-scheduler v1.36
configuration   flags and files as a `SchedulerConfiguration`
run             runs the scheduler until a signal; logs in klog's format
"""
