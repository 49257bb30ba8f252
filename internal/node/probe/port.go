// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Port returns the number of the port that a probe or hook of c names: a number, the name of one of c's own ports (not
// of another container's), or a number written as a string. (Pure.)
func Port(c *corev1.Container, ref intstr.IntOrString) (int, error) {
	n := ref.IntValue() // of a string: what it reads as, 0 if it is no number
	if ref.Type == intstr.String {
		for _, p := range c.Ports {
			if p.Name != "" && p.Name == ref.StrVal {
				return checked(ref, int(p.ContainerPort))
			}
		}
		if _, err := strconv.Atoi(ref.StrVal); err != nil {
			return 0, fmt.Errorf("port %q is not among the container's named ports (%s)", ref.StrVal, portNames(c))
		}
	}
	return checked(ref, n)
}

func checked(ref intstr.IntOrString, n int) (int, error) {
	if n < 1 || n > 65535 {
		return 0, fmt.Errorf("port %q: %d is not between 1 and 65535", ref.String(), n)
	}
	return n, nil
}

func portNames(c *corev1.Container) string {
	var names []string
	for _, p := range c.Ports {
		if p.Name != "" {
			names = append(names, strconv.Quote(p.Name))
		}
	}
	if names == nil {
		return "it has none"
	}
	return strings.Join(names, ", ")
}

// errNoIP is better than to dial "": that would be the node itself.
var errNoIP = errors.New("the pod has no IP address")

// Address returns where to connect: at host or, if that is empty, at the pod. (Pure.)
func (t Target) Address(host string, port intstr.IntOrString) (string, error) {
	n, err := Port(t.Container, port)
	if err != nil {
		return "", err
	}
	if host == "" {
		host = t.PodIP
	}
	if host == "" {
		return "", errNoIP
	}
	return net.JoinHostPort(host, strconv.Itoa(n)), nil
}
