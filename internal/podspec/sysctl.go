// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxSysctl     = 253
	sysctlElement = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
	sysctlPattern = "^(" + sysctlElement + "[\\./])*" + sysctlElement + "$"
)

// sysctls: kernel settings of the Pod's own namespaces.
func (s *scope) sysctls(list []corev1.Sysctl, path *field.Path) (all errs) {
	if len(list) == 0 {
		return nil
	}
	pattern := regexp.MustCompile(sysctlPattern)
	names := seen{}
	for i, c := range list {
		at := path.Index(i).Child("name")
		switch {
		case c.Name == "":
			all = append(all, field.Required(at, ""))
			continue
		case len(c.Name) > maxSysctl || !pattern.MatchString(c.Name):
			all = append(all, field.Invalid(at, c.Name, "must have at most 253 characters and match regex "+
				sysctlPattern))
			continue
		}
		dotted := dottedSysctl(c.Name)
		all = append(all, names.unique(at, dotted)...)
		switch {
		case s.spec.HostNetwork && strings.HasPrefix(dotted, "net."):
			all = append(all, field.Invalid(at, c.Name, "may not be specified when 'hostNetwork' is true"))
		case s.spec.HostIPC && isIPCSysctl(dotted):
			all = append(all, field.Invalid(at, c.Name, "may not be specified when 'hostIPC' is true"))
		}
	}
	return all
}

// dottedSysctl writes net/ipv4/ip_forward as net.ipv4.ip_forward. Which of the two separators comes first
// decides; the other is then part of a name, as in net/ipv4/conf/eth0.1/rp_filter.
func dottedSysctl(name string) string {
	i := strings.IndexAny(name, "./")
	if i < 0 || name[i] == '.' {
		return name
	}
	return strings.NewReplacer("/", ".", ".", "/").Replace(name)
}

func isIPCSysctl(name string) bool {
	return strings.HasPrefix(name, "kernel.shm") || strings.HasPrefix(name, "kernel.msg") ||
		name == "kernel.sem" || strings.HasPrefix(name, "fs.mqueue.")
}

// domainname is the one sysctl of the UTS namespace that a pod may set: its host name is its own field.
const domainname = "kernel.domainname"

// safeSysctls are those that have a namespace and do no harm to other pods, as of Kubernetes 1.37.
func safeSysctls() []string {
	return []string{
		"kernel.shm_rmid_forced",
		"net.ipv4.ip_local_port_range",
		"net.ipv4.tcp_syncookies",
		"net.ipv4.ping_group_range",
		"net.ipv4.ip_unprivileged_port_start",
		"net.ipv4.ip_local_reserved_ports",
		"net.ipv4.tcp_keepalive_time",
		"net.ipv4.tcp_fin_timeout",
		"net.ipv4.tcp_keepalive_intvl",
		"net.ipv4.tcp_keepalive_probes",
		"net.ipv4.tcp_rmem",
		"net.ipv4.tcp_wmem",
		"net.ipv4.tcp_slow_start_after_idle",
		"net.ipv4.tcp_notsent_lowat",
	}
}

// SysctlPatterns name sysctls, in full or by a beginning and *: those that a node lets pods set besides the safe ones.
type SysctlPatterns []string

// ParseSysctlPatterns checks patterns and writes them with dots. Only sysctls that have a namespace can be let in: the
// others are the machine's, whoever sets them.
func ParseSysctlPatterns(patterns []string) (SysctlPatterns, error) {
	valid := regexp.MustCompile("^(" + sysctlElement + `[\./])*(` + sysctlElement + `|([a-z0-9][-_a-z0-9]*)?\*)$`)
	var out SysctlPatterns
	for _, p := range patterns {
		if len(p) > maxSysctl || !valid.MatchString(p) {
			return nil, fmt.Errorf("%q is not a sysctl such as kernel.msgmax, nor a pattern such as kernel.msg*", p)
		}
		p = dottedSysctl(p)
		if !namespaced(strings.TrimSuffix(p, "*")) {
			return nil,
				fmt.Errorf("%q belongs to the machine, not to a pod: only kernel.shm*, kernel.msg*, kernel.sem, kernel.domainname, fs.mqueue.*, net.* and user.* can be allowed", p)
		}
		out = append(out, p)
	}
	return out, nil
}

func (p SysctlPatterns) match(name string) bool {
	return slices.ContainsFunc(p, func(pattern string) bool {
		start, any := strings.CutSuffix(pattern, "*")
		return name == pattern || any && strings.HasPrefix(name, start)
	})
}

// namespaced reports whether each pod can have a sysctl for itself.
func namespaced(dotted string) bool {
	return strings.HasPrefix(dotted, "net.") || strings.HasPrefix(dotted, "user.") || isIPCSysctl(dotted) ||
		dotted == domainname
}

// ForbiddenSysctl says which sysctl of the Pod a node with these further ones does not let it set, and what to do;
// empty when there is none.
func ForbiddenSysctl(pod *corev1.Pod, allowed SysctlPatterns) string {
	if pod.Spec.SecurityContext == nil {
		return ""
	}
	for _, c := range pod.Spec.SecurityContext.Sysctls {
		dotted := dottedSysctl(c.Name)
		switch {
		case slices.Contains(safeSysctls(), dotted):
		case !namespaced(dotted):
			return fmt.Sprintf("forbidden sysctl: %q not allowlisted: it belongs to the machine, not to the pod: remove it, or set it on the machine", c.Name)
		case !allowed.match(dotted):
			return fmt.Sprintf("forbidden sysctl: %q not allowlisted: it is unsafe; the node allows it with --allowed-unsafe-sysctls", c.Name)
		case strings.HasPrefix(dotted, "user.") && (pod.Spec.HostUsers == nil || *pod.Spec.HostUsers):
			// Of the network's and of IPC the API has judged this already.
			return fmt.Sprintf("forbidden sysctl: %q not allowed with host User enabled: it is the machine's unless the pod has hostUsers: false", c.Name)
		case dotted == domainname && pod.Spec.HostNetwork: // such a pod has no names of its own either
			return fmt.Sprintf("forbidden sysctl: %q not allowed with host UTS enabled: it is the machine's if the pod has hostNetwork: true", c.Name)
		}
	}
	return ""
}
