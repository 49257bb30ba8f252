// SPDX-License-Identifier: Apache-2.0

package serviceips

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/onwrite"
)

// DefaultNodePorts is the range of node ports unless another is given, as Kubernetes has it.
const DefaultNodePorts = "30000-32767"

// NodePorts hands out the ports of the machine at which services are reached, and those of their health checks. A port
// belongs to one service, which may use it for several protocols. What is taken is rebuilt from the stored services at
// start; the server is the only writer of its store.
type NodePorts struct {
	ports utilnet.PortRange

	mu   sync.Mutex
	used map[int32]string // namespace/name of the service
}

// NewNodePorts hands out those of a range such as 30000-32767.
func NewNodePorts(text string) (*NodePorts, error) {
	r, err := utilnet.ParsePortRange(text)
	if err != nil || r.Size < 1 || r.Base < 1 || r.Base+r.Size-1 > 65535 {
		return nil, fmt.Errorf("node port range %q: write it like %s, within 1-65535", text, DefaultNodePorts)
	}
	return &NodePorts{ports: *r, used: map[int32]string{}}, nil
}

// Load takes the ports of the services in the store.
func (n *NodePorts) Load(services []corev1.Service) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range services {
		for port := range portsOf(&services[i]) {
			n.used[port] = nameOf(&services[i])
		}
	}
}

func nameOf(s *corev1.Service) string { return s.Namespace + "/" + s.Name }

// portsOf are the node ports of a service.
func portsOf(s *corev1.Service) map[int32]bool {
	out := map[int32]bool{}
	for _, p := range s.Spec.Ports {
		if p.NodePort != 0 {
			out[p.NodePort] = true
		}
	}
	if s.Spec.HealthCheckNodePort != 0 {
		out[s.Spec.HealthCheckNodePort] = true
	}
	return out
}

// Attach makes a service store allocate and free node ports.
func (n *NodePorts) Attach(services *onwrite.Hooks) {
	services.Add(onwrite.Calls{
		Creating: func(obj runtime.Object, dry bool) (onwrite.Finish, error) {
			return n.assign(obj.(*corev1.Service), nil, dry)
		},
		Updating: func(obj, old runtime.Object, dry bool) (onwrite.Finish, error) {
			return n.assign(obj.(*corev1.Service), old.(*corev1.Service), dry)
		},
		Deleted: func(obj runtime.Object) {
			n.release(portsOf(obj.(*corev1.Service)))
		},
	})
}

func (n *NodePorts) release(ports map[int32]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for p := range ports {
		delete(n.used, p)
	}
}

// assign takes the ports that a service names, and gives it those that it needs and does not name. The returned
// function gives back what is not used: the new ones if the write did not happen, else those of before.
func (n *NodePorts) assign(s, old *corev1.Service, dry bool) (onwrite.Finish, error) {
	had := map[int32]bool{}
	if old != nil {
		had = portsOf(old)
		keep(s, old)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	taken := map[int32]bool{}
	fail := func(at *field.Path, port int32, msg string) error {
		for p := range taken {
			delete(n.used, p)
		}
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), s.Name,
			field.ErrorList{field.Invalid(at, port, msg)})
	}
	need := func(port *int32, at *field.Path, wanted bool) error {
		switch {
		case *port != 0 && !had[*port] && !taken[*port]:
			if msg := n.refusal(*port); msg != "" {
				return fail(at, *port, msg)
			}
		case *port == 0 && wanted:
			if *port = n.free(); *port == 0 {
				return fail(at, 0, fmt.Sprintf("failed to allocate a nodePort: all of range %s are taken; "+
					"delete services that need none, or start the server with a larger --service-node-port-range",
					n.text()))
			}
		default:
			return nil
		}
		taken[*port], n.used[*port] = true, nameOf(s)
		return nil
	}
	at := field.NewPath("spec")
	for i := range s.Spec.Ports {
		if p := &s.Spec.Ports[i]; p.NodePort == 0 && needsPorts(s) {
			p.NodePort = shared(s, p)
		}
		if err := need(&s.Spec.Ports[i].NodePort, at.Child("ports").Index(i).Child("nodePort"),
			needsPorts(s)); err != nil {
			return nil, err
		}
	}
	if err := need(&s.Spec.HealthCheckNodePort, at.Child("healthCheckNodePort"), needsHealthCheck(s)); err != nil {
		return nil, err
	}
	dropped := without(had, portsOf(s))
	return func(ok bool) {
		if ok && !dry {
			n.release(dropped)
		} else {
			n.release(taken)
		}
	}, nil
}

// without is the ports that are in the first set only.
func without(ports, others map[int32]bool) map[int32]bool {
	rest := maps.Clone(ports)
	maps.DeleteFunc(rest, func(p int32, _ bool) bool { return others[p] })
	return rest
}

// shared is the node port of the same port with another protocol, as of DNS over TCP and UDP; 0 if there is none.
func shared(s *corev1.Service, p *corev1.ServicePort) int32 {
	for _, o := range s.Spec.Ports {
		if o.NodePort != 0 && o.Port == p.Port && o.Protocol != p.Protocol {
			return o.NodePort
		}
	}
	return 0
}

// keep fills in the ports that were given before and that the client leaves out, as a PUT of a hand-written manifest
// does.
func keep(s, old *corev1.Service) {
	if needsPorts(s) {
		named := portsOf(s)
		for i := range s.Spec.Ports {
			p := &s.Spec.Ports[i]
			for _, o := range old.Spec.Ports {
				if p.NodePort == 0 && o.NodePort != 0 && o.Port == p.Port && o.Protocol == p.Protocol &&
					!named[o.NodePort] {
					p.NodePort = o.NodePort
				}
			}
		}
	}
	if needsHealthCheck(s) && s.Spec.HealthCheckNodePort == 0 {
		s.Spec.HealthCheckNodePort = old.Spec.HealthCheckNodePort
	}
}

// refusal says why a port cannot be had; empty if it can.
func (n *NodePorts) refusal(port int32) string {
	if !n.ports.Contains(int(port)) {
		return fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %s; choose one of these, "+
			"leave nodePort out to get a free one, or start the server with another --service-node-port-range",
			n.text())
	}
	if owner, taken := n.used[port]; taken {
		return fmt.Sprintf("provided port is already allocated, to service %s; choose another, or leave nodePort out to get a free one",
			owner)
	}
	return ""
}

// text is the range, its last port included.
func (n *NodePorts) text() string {
	return fmt.Sprintf("%d-%d", n.ports.Base, n.ports.Base+n.ports.Size-1)
}

// free is a port that nobody has; 0 if there is none. It starts anywhere, so that a port is not used again at once.
func (n *NodePorts) free() int32 {
	start := rand.IntN(n.ports.Size)
	for i := range n.ports.Size {
		port := int32(n.ports.Base + (start+i)%n.ports.Size)
		if _, taken := n.used[port]; !taken {
			return port
		}
	}
	return 0
}

func needsPorts(s *corev1.Service) bool {
	switch s.Spec.Type {
	case corev1.ServiceTypeNodePort:
		return true
	case corev1.ServiceTypeLoadBalancer:
		return s.Spec.AllocateLoadBalancerNodePorts == nil || *s.Spec.AllocateLoadBalancerNodePorts
	}
	return false
}

func needsHealthCheck(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}
