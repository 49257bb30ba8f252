// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// HostsInput is what a pod's hosts file depends on.
type HostsInput struct {
	Pod *corev1.Pod
	// IPs of the pod, the primary one first.
	IPs []string
	// ClusterDomain completes the name of a pod that has a subdomain; "" for none.
	ClusterDomain string
	// Host is the node's own /etc/hosts, which a pod on the host's network gets.
	Host []byte
}

// EtcHosts makes the contents of the pod's /etc/hosts: the usual local names and the pod's own, or the host's file for
// a pod on the host's network, and in either case the pod's hostAliases. (Pure.)
func EtcHosts(in HostsInput) []byte {
	var b bytes.Buffer
	if in.Pod.Spec.HostNetwork {
		b.WriteString("# Kubernetes-managed hosts file (host network).\n")
		b.Write(in.Host)
		if len(in.Host) > 0 && in.Host[len(in.Host)-1] != '\n' {
			b.WriteByte('\n')
		}
	} else {
		b.WriteString("# Kubernetes-managed hosts file.\n" +
			"127.0.0.1\tlocalhost\n" +
			"::1\tlocalhost ip6-localhost ip6-loopback\n" +
			"fe00::0\tip6-localnet\n" +
			"fe00::0\tip6-mcastprefix\n" +
			"fe00::1\tip6-allnodes\n" +
			"fe00::2\tip6-allrouters\n")
		name, domain := Hostname(in.Pod, in.ClusterDomain)
		for _, ip := range in.IPs {
			if domain != "" {
				fmt.Fprintf(&b, "%s\t%s.%s\t%s\n", ip, name, domain, name)
			} else {
				fmt.Fprintf(&b, "%s\t%s\n", ip, name)
			}
		}
	}
	if len(in.Pod.Spec.HostAliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
		for _, a := range in.Pod.Spec.HostAliases {
			fmt.Fprintf(&b, "%s\t%s\n", a.IP, strings.Join(a.Hostnames, "\t"))
		}
	}
	return b.Bytes()
}

// Hostname is the pod's host name, and the domain below which it is found: that of its subdomain, "" when it has none.
// A name that is too long for a host name is cut. (Pure.)
func Hostname(pod *corev1.Pod, clusterDomain string) (name, domain string) {
	if o := pod.Spec.HostnameOverride; o != nil {
		return cut(*o), ""
	}
	name = pod.Spec.Hostname
	if name == "" {
		name = cut(pod.Name)
	}
	if pod.Spec.Subdomain != "" {
		domain = pod.Spec.Subdomain + "." + pod.Namespace + ".svc"
		if clusterDomain != "" {
			domain += "." + clusterDomain
		}
	}
	return name, domain
}

func cut(name string) string {
	if len(name) <= validation.DNS1123LabelMaxLength {
		return name
	}
	return strings.TrimRight(name[:validation.DNS1123LabelMaxLength], "-.")
}

// kernelNameMax is what a node name of the kernel holds (utsname).
const kernelNameMax = 64

// KernelHostname is the name that the kernel gives the pod: its host name or, with setHostnameAsFQDN, the whole of
// name.domain, which may be too long for a kernel (PL-26). (Pure.)
func KernelHostname(pod *corev1.Pod, clusterDomain string) (string, error) {
	name, domain := Hostname(pod, clusterDomain)
	if domain == "" || pod.Spec.SetHostnameAsFQDN == nil || !*pod.Spec.SetHostnameAsFQDN {
		return name, nil
	}
	name += "." + domain
	if len(name) > kernelNameMax {
		return "", fmt.Errorf("setHostnameAsFQDN: the name %s is too long for a kernel (%d characters, at most %d): "+
			"make hostname, subdomain or namespace shorter, or leave setHostnameAsFQDN out", name, len(name),
			kernelNameMax)
	}
	return name, nil
}

// WriteEtcHosts brings the pod's hosts file up to date and returns its path, to be mounted at /etc/hosts in every
// container that does not mount something there itself. For a pod on the host's network the node's /etc/hosts is read.
// Containers have the file itself mounted, so it is written in place.
func (m *Manager) WriteEtcHosts(pod *corev1.Pod, ips []string, clusterDomain string) (string, error) {
	dir, err := m.podDir(pod.UID)
	if err != nil {
		return "", err
	}
	defer m.locks.take(pod.UID)()
	in := HostsInput{Pod: pod, IPs: ips, ClusterDomain: clusterDomain}
	if pod.Spec.HostNetwork {
		if in.Host, err = os.ReadFile("/etc/hosts"); err != nil && !os.IsNotExist(err) {
			return "", fmt.Errorf("the node's hosts file: %w", err)
		}
	}
	name, want := filepath.Join(dir, "etc-hosts"), EtcHosts(in)
	if have, err := os.ReadFile(name); err == nil && bytes.Equal(have, want) {
		return name, nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	if err := os.WriteFile(name, want, 0o644); err != nil {
		return "", err
	}
	return name, os.Chmod(name, 0o644)
}
