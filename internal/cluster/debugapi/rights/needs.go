// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/podspec"
)

// The ClusterRoles that come with the API, from the least to the most.
const (
	RoleLook       = "wherry-look"
	RoleDebug      = "wherry-debug"
	RolePrivileged = "wherry-privileged"
)

// Request is what is to be done with a pod.
type Request struct {
	As       string // wire.Shell, wire.Exec or wire.Files
	Profile  string // of a shell
	Joins    bool   // the processes of a container; a shell does
	Writable bool   // the containers' files; wire.OpUnpack is
	// Claimed is the pod's volume of whose claim is known that it is a folder of a machine; empty: there is none.
	Claimed string
}

// Need is a right that is needed, of the group of the API.
type Need struct {
	Verb, Resource, Subresource string
	Name                        string // of the pod or profile
	Why                         string // for the user: "writable=true"
	Role                        string // the least ClusterRole that has it
}

// Needs are the rights that a request needs. kube-apiserver has authorised the verb of the HTTP method alone, which is
// get for every WebSocket.
func Needs(pod *corev1.Pod, r Request) []Need {
	of := func(verb, sub, why, role string) Need {
		return Need{Verb: verb, Resource: "pods", Subresource: sub, Name: pod.Name, Why: why, Role: role}
	}
	use := func(profile, why string) Need {
		return Need{Verb: wire.Use, Resource: wire.Profiles, Name: profile, Why: why, Role: roleOf(profile)}
	}
	var all []Need
	switch {
	case r.As == wire.Files && !r.Writable:
		all = append(all, of("get", wire.Files, "to read files", RoleLook))
	case r.As == wire.Files:
		all = append(all, of("create", wire.Files, "to write files", RoleDebug))
	default:
		all = append(all, of("create", r.As, "to run a debugger", RoleDebug))
		if r.Writable {
			all = append(all, of("create", wire.Files, wire.ParamWritable+"=true", RoleDebug))
		}
	}
	switch {
	case r.As == wire.Shell:
		all = append(all, use(r.Profile, "the profile asked for"))
	case r.Joins:
		all = append(all, use(profileOfExec, "an image beside a container's processes has it"))
	}
	why := HostAccess(pod)
	if why == "" && r.Claimed != "" {
		why = fmt.Sprintf("volume %s is a folder of the pod's machine, by its claim", r.Claimed)
	}
	if why != "" {
		all = append(all, use(wire.ProfileHost, why))
	}
	return all
}

// Folder reports whether a claim's volume is a folder of a machine.
func Folder(v *corev1.PersistentVolume) bool { return v.Spec.HostPath != nil || v.Spec.Local != nil }

// roleOf is the least role that has the use of a profile.
func roleOf(profile string) string {
	switch profile {
	case "general", "baseline", "restricted":
		return RoleDebug
	}
	return RolePrivileged
}

// profileOfExec is the one that an image beside a container's processes has.
const profileOfExec = "general"

// HostAccess says how a debugger in a pod would reach the machine by way of the pod, as far as the pod itself shows;
// "": it would not. It is what Pod Security's level "baseline" forbids. To read files is enough: those of a container
// that sees the machine's processes are, by /proc/1/root, the machine's, and a folder of the machine may have its keys
// in it. To be allowed to write or not makes no difference: who joins the container's processes writes by /proc, and a
// socket needs no writing.
func HostAccess(pod *corev1.Pod) string {
	switch {
	case pod.Spec.HostNetwork:
		return "the pod shares its machine's network"
	case pod.Spec.HostPID:
		return "the pod sees its machine's processes"
	case pod.Spec.HostIPC:
		return "the pod shares its machine's IPC"
	}
	for ref := range podspec.Containers(&pod.Spec) {
		if why := powerful(ref.Container.SecurityContext); why != "" {
			return fmt.Sprintf("the pod's container %s %s", ref.Container.Name, why)
		}
	}
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.HostPath != nil {
			return fmt.Sprintf("volume %s is a folder of the pod's machine", v.Name)
		}
	}
	return ""
}

// powerful says by what a container is as much as its machine's root, to whom joins its processes; "": by nothing.
func powerful(c *corev1.SecurityContext) string {
	switch {
	case c == nil:
		return ""
	case c.Privileged != nil && *c.Privileged:
		return "is privileged"
	case c.ProcMount != nil && *c.ProcMount != corev1.DefaultProcMount:
		return "sees all of /proc"
	case c.Capabilities == nil:
		return ""
	}
	for _, add := range c.Capabilities.Add {
		switch name := strings.TrimPrefix(strings.ToUpper(string(add)), "CAP_"); name {
		case "ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO", "SYS_BOOT", "BPF", "PERFMON", "DAC_READ_SEARCH":
			return "has the capability " + name
		}
	}
	return ""
}

// Attributes are how an authorizer is asked for a need.
func (n Need) Attributes(u user.Info, namespace string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{User: u, Verb: n.Verb, Namespace: namespace, APIGroup: wire.Group,
		APIVersion: wire.Version, Resource: n.Resource, Subresource: n.Subresource, Name: n.Name, ResourceRequest: true}
}

// Missing is the word for somebody who lacks a need.
func (n Need) Missing(user, namespace string) string {
	what := n.Resource
	if n.Subresource != "" {
		what += "/" + n.Subresource
	}
	return fmt.Sprintf("%s may not %s %s.%s %q in namespace %s, which is needed here (%s): ClusterRole %s has that right; bind it in that namespace",
		user, n.Verb, what, wire.Group, n.Name, namespace, n.Why, n.Role)
}
