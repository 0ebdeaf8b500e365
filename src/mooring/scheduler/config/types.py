"""`KubeSchedulerConfiguration` v1 as values: everything that an operator can ask of a scheduler.

Comes in   a file, through `load`
Goes out   `SchedulerConfiguration` and its parts, frozen, with every default filled in

 1. The fields are those of `kubescheduler.config.k8s.io/v1` in kube-scheduler v1.36, no more and no fewer. There are
    no bind addresses for health and metrics: version 1 left them to flags.
 2. In a loaded configuration each profile's `plugins` already holds the default plugins, merged with what was asked
    for, and `plugin_config` holds the arguments of every plugin that takes some.
 3. `percentage_of_nodes_to_score` is None where the file does not set it. kube-scheduler would fill in 0, which
    means "decide by the size of the cluster"; here it means that all nodes are scored, and 0 is what 0 is there.
"""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import field

from mooring.scheduler.config.arguments import KnownArguments
from mooring.scheduler.config.fields import Int32, Int64, OrDefault, Seconds, Settings
from mooring.scheduler.framework.points import ExtensionPoint

API_GROUP = "kubescheduler.config.k8s.io"
API_VERSION = f"{API_GROUP}/v1"
KIND = "KubeSchedulerConfiguration"

DEFAULT_SCHEDULER_NAME = "default-scheduler"
ALL_PLUGINS = "*"
"""In a list of disabled plugins: each and every one."""

RawArguments: TypeAlias = Mapping[str, object]
"""The arguments of a plugin that is not Kubernetes' own, as they stand in the file."""

PluginArguments: TypeAlias = KnownArguments | RawArguments


class LeaderElectionConfiguration(Settings):
    leader_elect: bool = True
    lease_duration_s: OrDefault[Seconds] = field(default=15.0, name="leaseDuration")
    renew_deadline_s: OrDefault[Seconds] = field(default=10.0, name="renewDeadline")
    retry_period_s: OrDefault[Seconds] = field(default=2.0, name="retryPeriod")
    resource_lock: OrDefault[str] = "leases"
    resource_name: OrDefault[str] = "kube-scheduler"
    resource_namespace: OrDefault[str] = "kube-system"


class ClientConnectionConfiguration(Settings):
    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: OrDefault[str] = "application/vnd.kubernetes.protobuf"
    qps: OrDefault[float] = 50.0
    burst: OrDefault[Int32] = 100


class Plugin(Settings):
    """A plugin in a list. The weight counts where scores are added up; 0 there means that none was given."""

    name: str
    weight: Int32 = 0


class PluginSet(Settings):
    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


NO_PLUGINS = PluginSet()


class Plugins(Settings):
    multi_point: PluginSet = NO_PLUGINS
    pre_enqueue: PluginSet = NO_PLUGINS
    queue_sort: PluginSet = NO_PLUGINS
    pre_filter: PluginSet = NO_PLUGINS
    filter: PluginSet = NO_PLUGINS
    post_filter: PluginSet = NO_PLUGINS
    pre_score: PluginSet = NO_PLUGINS
    score: PluginSet = NO_PLUGINS
    reserve: PluginSet = NO_PLUGINS
    permit: PluginSet = NO_PLUGINS
    pre_bind: PluginSet = NO_PLUGINS
    bind: PluginSet = NO_PLUGINS
    post_bind: PluginSet = NO_PLUGINS
    placement_generate: PluginSet = NO_PLUGINS
    placement_score: PluginSet = NO_PLUGINS

    def at(self, point: ExtensionPoint) -> PluginSet:
        found = getattr(self, point.attribute)
        assert isinstance(found, PluginSet), f"{point} has no list of plugins"
        return found

    def enabled_names(self) -> tuple[str, ...]:
        """Every plugin that is enabled anywhere, once, in the order of the alphabet."""
        lists = (self.multi_point, *(self.at(point) for point in ExtensionPoint))
        return tuple(sorted({plugin.name for plugins in lists for plugin in plugins.enabled}))


class PluginConfig(Settings):
    name: str
    args: PluginArguments | None = None


class Profile(Settings):
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class ExtenderManagedResource(Settings):
    name: str
    ignored_by_scheduler: bool = False


class ExtenderTLSConfig(Settings):
    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class Extender(Settings):
    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout_s: OrDefault[Seconds] = field(default=5.0, name="httpTimeout")
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class SchedulerConfiguration(Settings):
    parallelism: Int32 = 16
    leader_election: LeaderElectionConfiguration = LeaderElectionConfiguration()
    client_connection: ClientConnectionConfiguration = ClientConnectionConfiguration()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: Int32 | None = None
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[Profile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False
