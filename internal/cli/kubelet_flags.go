// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/node/numa"
	"github.com/wherryproject/wherry/internal/server"
)

// kubeletFlags are the kubelet's, by name and form; those that it has in its configuration file only are named so that
// one finds them.
func kubeletFlags(cmd *cobra.Command, k *server.KubeletOptions) {
	f := cmd.Flags()
	f.StringVar(&k.Dir, "kubelet-dir", k.Dir,
		"folder where programs on this machine, such as device plug-ins, look for the kubelet's sockets; none to disable "+
			"(default "+server.KubeletDir+" with the default data folder, else <data-dir>/kubelet)")
	f.StringVar(&k.CPUPolicy, "cpu-manager-policy", k.CPUPolicy,
		"none, or static: containers of Guaranteed pods that request whole CPUs get them exclusively")
	_ = cmd.RegisterFlagCompletionFunc("cpu-manager-policy", // fails only for a flag that is not there
		cobra.FixedCompletions([]string{server.CPUPolicyNone, server.CPUPolicyStatic},
			cobra.ShellCompDirectiveNoFileComp))
	cmdline.Pairs(f, &k.CPUOptions, "cpu-manager-policy-options",
		"options of the static policy, `OPTION=true,...`: full-pcpus-only (whole cores, or the pod is rejected), strict-cpu-reservation (other containers do not run on the reserved CPUs), distribute-cpus-across-numa, distribute-cpus-across-cores, align-by-socket, prefer-align-cpus-by-uncorecache")
	f.StringVar(&k.ReservedCPUs, "reserved-cpus", k.ReservedCPUs,
		"CPUs reserved for the system, for example 0-1: they are not allocatable, and no container gets one exclusively")
	numaFlags(cmd, k)
	f.StringSliceVar(&k.NodeLabels, "node-labels", nil,
		"labels KEY=VALUE,... that the node is registered with; those of kubernetes.io and k8s.io only where a node may set them itself, for example topology.kubernetes.io/zone and those in node.kubernetes.io")
	f.StringSliceVar(&k.RegisterWithTaints, "register-with-taints", nil,
		"taints KEY=VALUE:EFFECT,... that the node is registered with, for example dedicated=gpu:NoSchedule; they are not put on a node that there is already")
	f.IntVar(&k.ReadOnlyPort, "read-only-port", k.ReadOnlyPort,
		"port that serves this node's pods and metrics to anybody, without TLS, for legacy monitoring; 0 for none")
	f.BoolVar(&k.SystemLogQuery, "enable-system-log-query", k.SystemLogQuery,
		"serve this machine's journal and /var/log to those who may read nodes/log (kubectl get --raw \"/api/v1/nodes/NODE/proxy/logs/?query=UNIT\")")
	f.StringVar(&k.LogMaxSize, "container-log-max-size", k.LogMaxSize,
		"size at which a container's log is rotated")
	f.IntVar(&k.LogMaxFiles, "container-log-max-files", k.LogMaxFiles,
		"maximum number of log files per container, including the current one")
	f.StringVar(&k.SwapBehavior, "swap-behavior", k.SwapBehavior,
		"whether pods' memory may be swapped out: NoSwap, or LimitedSwap (with cgroup v2: containers of burstable pods in proportion to the memory they request)")
	_ = cmd.RegisterFlagCompletionFunc("swap-behavior", // fails only for a flag that is not there
		cobra.FixedCompletions([]string{server.NoSwap, server.LimitedSwap}, cobra.ShellCompDirectiveNoFileComp))
	f.DurationVar(&k.ShutdownGrace, "shutdown-grace-period", k.ShutdownGrace,
		"time that pods have to end before the machine shuts down; 0: pods are not ended")
	f.DurationVar(&k.ShutdownGraceCritical, "shutdown-grace-period-critical-pods", k.ShutdownGraceCritical,
		"last part of that time, reserved for critical pods")
	f.StringSliceVar(&k.ShutdownByPriority, "shutdown-grace-period-by-pod-priority", nil,
		"instead of these two, `PRIORITY=SECONDS,...`: how long pods of that priority or higher have; the lowest end first")
}

// numaFlags are those of the memory manager and of the topology manager.
func numaFlags(cmd *cobra.Command, k *server.KubeletOptions) {
	f := cmd.Flags()
	f.StringVar(&k.MemoryPolicy, "memory-manager-policy", k.MemoryPolicy,
		"None, or Static: containers of Guaranteed pods get their memory from as few NUMA nodes as possible, and use no others")
	_ = cmd.RegisterFlagCompletionFunc("memory-manager-policy", // fails only for a flag that is not there
		cobra.FixedCompletions([]string{server.MemoryPolicyNone, server.MemoryPolicyStatic},
			cobra.ShellCompDirectiveNoFileComp))
	f.StringArrayVar(&k.ReservedMemory, "reserved-memory", nil,
		"memory reserved for the system, `NUMA-NODE:TYPE=SIZE,...;...`, for example '0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=1Gi': it is not allocatable")
	f.StringVar(&k.TopologyPolicy, "topology-manager-policy", k.TopologyPolicy,
		"how close together a pod's CPUs, devices and memory must be: none, best-effort, restricted (on as few NUMA nodes as would hold them, or the pod is rejected) or single-numa-node")
	var policies []string
	for _, p := range numa.Policies() {
		policies = append(policies, string(p))
	}
	_ = cmd.RegisterFlagCompletionFunc("topology-manager-policy", // fails only for a flag that is not there
		cobra.FixedCompletions(policies, cobra.ShellCompDirectiveNoFileComp))
	f.StringVar(&k.TopologyScope, "topology-manager-scope", k.TopologyScope,
		"what is kept together: container, or pod for all containers of a pod")
	_ = cmd.RegisterFlagCompletionFunc("topology-manager-scope", // fails only for a flag that is not there
		cobra.FixedCompletions([]string{server.ScopeContainer, server.ScopePod}, cobra.ShellCompDirectiveNoFileComp))
	cmdline.Pairs(f, &k.TopologyOptions, "topology-manager-policy-options",
		"options of the topology manager, `OPTION=VALUE,...`: prefer-closest-numa-nodes=true, max-allowable-numa-nodes=12 (more than 8 are slow)")
}
