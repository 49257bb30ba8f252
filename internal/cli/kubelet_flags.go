// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/server"
)

// kubeletFlags are the kubelet's, by name and form; those that it has in its configuration file only are named so that
// one finds them.
func kubeletFlags(cmd *cobra.Command, k *server.KubeletOptions) {
	f := cmd.Flags()
	f.StringVar(&k.Dir, "kubelet-dir", k.Dir,
		"folder where programs on this machine look for the kubelet's sockets, such as device plug-ins; none: nowhere "+
			"(default "+server.KubeletDir+" with the default data folder, else <data-dir>/kubelet)")
	f.StringVar(&k.CPUPolicy, "cpu-manager-policy", k.CPUPolicy,
		"none, or static: containers of guaranteed pods that request whole CPUs have them to themselves")
	_ = cmd.RegisterFlagCompletionFunc("cpu-manager-policy", // fails only for a flag that is not there
		cobra.FixedCompletions([]string{server.CPUPolicyNone, server.CPUPolicyStatic},
			cobra.ShellCompDirectiveNoFileComp))
	f.StringToStringVar(&k.CPUOptions, "cpu-manager-policy-options", nil,
		"options of the policy static, each with =true: full-pcpus-only (whole cores, or the pod is refused), strict-cpu-reservation (other containers do not run on the reserved CPUs), distribute-cpus-across-numa, distribute-cpus-across-cores, align-by-socket, prefer-align-cpus-by-uncorecache")
	f.StringVar(&k.ReservedCPUs, "reserved-cpus", k.ReservedCPUs,
		"CPUs that are kept for the system, for example 0-1: they are not allocatable, and no container has one to itself")
	f.IntVar(&k.ReadOnlyPort, "read-only-port", k.ReadOnlyPort,
		"port at which this node's pods and figures are shown to anybody, without TLS, as old monitoring wants it; 0 for none")
	f.BoolVar(&k.SystemLogQuery, "enable-system-log-query", k.SystemLogQuery,
		"show this machine's journal and /var/log to those who may read nodes/log (kubectl get --raw \"/api/v1/nodes/NODE/proxy/logs/?query=UNIT\")")
	f.StringVar(&k.LogMaxSize, "container-log-max-size", k.LogMaxSize,
		"size of a container's log at which it is rotated")
	f.IntVar(&k.LogMaxFiles, "container-log-max-files", k.LogMaxFiles,
		"number of log files of a container, with the one that is written")
	f.StringVar(&k.SwapBehavior, "swap-behavior", k.SwapBehavior,
		"whether pods' memory may be swapped out: NoSwap, or LimitedSwap (with cgroup v2: containers of burstable pods in proportion to the memory they request)")
	_ = cmd.RegisterFlagCompletionFunc("swap-behavior", // fails only for a flag that is not there
		cobra.FixedCompletions([]string{server.NoSwap, server.LimitedSwap}, cobra.ShellCompDirectiveNoFileComp))
	f.DurationVar(&k.ShutdownGrace, "shutdown-grace-period", k.ShutdownGrace,
		"time in which pods end before the machine goes down; 0: they are not ended")
	f.DurationVar(&k.ShutdownGraceCritical, "shutdown-grace-period-critical-pods", k.ShutdownGraceCritical,
		"last part of that time, in which critical pods end")
	f.StringSliceVar(&k.ShutdownByPriority, "shutdown-grace-period-by-pod-priority", nil,
		"instead of these two: PRIORITY=SECONDS,..., how long pods of a priority or above have, the least first")
}
