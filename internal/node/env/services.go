// SPDX-License-Identifier: Apache-2.0

package env

import (
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	masterNamespace = "default"
	masterService   = "kubernetes"
)

// NeedsServices says whether the pod's variables depend on the Services of its own namespace. The kubernetes Service of
// the default namespace is given to every pod in any case.
func NeedsServices(pod *corev1.Pod) bool {
	return pod.Spec.EnableServiceLinks == nil || *pod.Spec.EnableServiceLinks
}

// serviceVars are the NAME_SERVICE_HOST, NAME_SERVICE_PORT and docker-link style NAME_PORT_… variables of the services
// a pod can see. A service without an address of its own (headless, ExternalName) has none.
func serviceVars(pod *corev1.Pod, services []*corev1.Service) map[string]string {
	out := map[string]string{}
	links := NeedsServices(pod)
	var master *corev1.Service
	ownMaster := false
	for _, s := range services {
		if s.Spec.ClusterIP == "" || s.Spec.ClusterIP == corev1.ClusterIPNone || len(s.Spec.Ports) == 0 {
			continue
		}
		if s.Namespace == masterNamespace && s.Name == masterService {
			master = s
		}
		if links && s.Namespace == pod.Namespace {
			ownMaster = ownMaster || s.Name == masterService
			addService(out, s)
		}
	}
	// A service called kubernetes in the pod's own namespace hides the one of the default namespace.
	if master != nil && !ownMaster {
		addService(out, master)
	}
	return out
}

func addService(out map[string]string, s *corev1.Service) {
	name, ip := variable(s.Name), s.Spec.ClusterIP
	out[name+"_SERVICE_HOST"] = ip
	out[name+"_SERVICE_PORT"] = strconv.Itoa(int(s.Spec.Ports[0].Port))
	for i, p := range s.Spec.Ports {
		port := strconv.Itoa(int(p.Port))
		if p.Name != "" {
			out[name+"_SERVICE_PORT_"+variable(p.Name)] = port
		}
		proto := string(p.Protocol)
		if proto == "" {
			proto = string(corev1.ProtocolTCP)
		}
		url := strings.ToLower(proto) + "://" + net.JoinHostPort(ip, port)
		if i == 0 {
			out[name+"_PORT"] = url
		}
		prefix := name + "_PORT_" + port + "_" + strings.ToUpper(proto)
		out[prefix] = url
		out[prefix+"_PROTO"] = strings.ToLower(proto)
		out[prefix+"_PORT"] = port
		out[prefix+"_ADDR"] = ip
	}
}

func variable(s string) string { return strings.ToUpper(strings.ReplaceAll(s, "-", "_")) }
