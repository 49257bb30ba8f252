// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/userns"
	"github.com/wherryproject/wherry/internal/podspec"
)

// abilities are what the runtime can do that not every runtime can. One that does not say cannot.
type abilities struct {
	recursiveReadOnly bool // it makes mounts read-only with all below them
	userNamespaces    bool
	groupsPolicy      bool // it can leave out the groups that the image gives its user
	handlers          []corev1.NodeRuntimeHandler
}

// abilitiesOf asks the runtime.
func abilitiesOf(ctx context.Context, c *cri.Client) (out abilities) {
	s, err := c.Runtime.Status(ctx, &runtimeapi.StatusRequest{})
	if err != nil {
		return out
	}
	out.groupsPolicy = s.GetFeatures().GetSupplementalGroupsPolicy()
	for _, h := range s.GetRuntimeHandlers() {
		f := h.GetFeatures()
		if h.GetName() == "" {
			out.recursiveReadOnly, out.userNamespaces = f.GetRecursiveReadOnlyMounts(), f.GetUserNamespaces()
		}
		recursive, namespaces := f.GetRecursiveReadOnlyMounts(), f.GetUserNamespaces()
		out.handlers = append(out.handlers, corev1.NodeRuntimeHandler{Name: h.GetName(),
			Features: &corev1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: &recursive,
				UserNamespaces: &namespaces}})
	}
	return out
}

// host is what this machine can do for pods.
func (a *Agent) hostCan() podspec.Host {
	return podspec.Host{AppArmor: a.machine.apparmor, GroupsPolicy: a.can.groupsPolicy, NoUsers: a.noUsers()}
}

// noUsers says why pods cannot have users of their own here; "" where they can.
func (a *Agent) noUsers() string {
	if !a.can.userNamespaces {
		return "this node's kernel or container runtime cannot give a pod users of its own"
	}
	if a.cfg.RuntimeFolder == "" {
		return ""
	}
	if at := userns.Closed(a.cfg.RuntimeFolder); at != "" {
		return fmt.Sprintf("users of a pod's own cannot pass through %s on the node: have its administrator run "+
			"chmod o+x %s", at, at)
	}
	return ""
}

// userPool gives pods users of their own, where the runtime can (PL-24). A machine without the files gives nobody any.
func (a *Agent) userPool() *userns.Pool {
	if !a.can.userNamespaces {
		return nil
	}
	subuid, _ := os.ReadFile("/etc/subuid")
	subgid, _ := os.ReadFile("/etc/subgid")
	return userns.NewPool(a.cfg.podsFolder(), subuid, subgid)
}
