"""The etcd of the store's tests, for clusters on one."""

from tests.store.conftest import etcd_alone, etcd_program, pytest_collection_modifyitems

__all__ = ["etcd_alone", "etcd_program", "pytest_collection_modifyitems"]
