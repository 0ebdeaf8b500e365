"""The store on etcd, laid out as kube-apiserver does."""
