// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestEtcHosts proves PL-12: the hosts file of an ordinary pod, one with a subdomain, one on the host's network, with aliases.
func TestEtcHosts(t *testing.T) {
	const local = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
	aliases := []corev1.HostAlias{{IP: "192.0.2.1", Hostnames: []string{"a", "b.example"}}}
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"plain":                 {corev1.PodSpec{}, local + "10.1.0.5\tweb\nfd00::5\tweb\n"},
		"hostname, subdomain":   {corev1.PodSpec{Hostname: "h", Subdomain: "sub"}, local + "10.1.0.5\th.sub.ns.svc.cluster.local\th\nfd00::5\th.sub.ns.svc.cluster.local\th\n"},
		"hostname override":     {corev1.PodSpec{Hostname: "h", HostnameOverride: ptr.To("o.example"), Subdomain: "sub"}, local + "10.1.0.5\to.example\nfd00::5\to.example\n"},
		"aliases":               {corev1.PodSpec{HostAliases: aliases}, local + "10.1.0.5\tweb\nfd00::5\tweb\n\n# Entries added by HostAliases.\n192.0.2.1\ta\tb.example\n"},
		"host network, aliases": {corev1.PodSpec{HostNetwork: true, HostAliases: aliases}, "# Kubernetes-managed hosts file (host network).\n127.0.0.1 node\n\n# Entries added by HostAliases.\n192.0.2.1\ta\tb.example\n"},
	} {
		pod := podWith()
		pod.Spec = c.spec
		got := string(EtcHosts(HostsInput{Pod: pod, IPs: []string{"10.1.0.5", "fd00::5"}, ClusterDomain: "cluster.local", Host: []byte("127.0.0.1 node")}))
		if got != c.want {
			t.Errorf("PL-12 %s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
	long := podWith()
	long.Name = strings.Repeat("x", 62) + "-yz"
	if name, domain := Hostname(long, "d"); name != strings.Repeat("x", 62) || domain != "" {
		t.Errorf("PL-12 %q %q", name, domain)
	}
}

// TestKernelHostname proves PL-26: the name the kernel shows is the short one, the override, or the whole name where that is
// asked for and fits.
func TestKernelHostname(t *testing.T) {
	const domain = "cluster.local" // with ns and svc: 27 characters behind name.subdomain
	whole := strings.Repeat("h", 64-len(".sub.ns.svc.cluster.local"))
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want string
		fail string
	}{
		"short":                {corev1.PodSpec{Hostname: "h", Subdomain: "sub"}, "h", ""},
		"whole":                {corev1.PodSpec{Hostname: "h", Subdomain: "sub", SetHostnameAsFQDN: ptr.To(true)}, "h.sub.ns.svc.cluster.local", ""},
		"no whole name":        {corev1.PodSpec{Hostname: "h", SetHostnameAsFQDN: ptr.To(true)}, "h", ""},
		"not asked for":        {corev1.PodSpec{Hostname: "h", Subdomain: "sub", SetHostnameAsFQDN: ptr.To(false)}, "h", ""},
		"64 characters":        {corev1.PodSpec{Hostname: whole, Subdomain: "sub", SetHostnameAsFQDN: ptr.To(true)}, whole + ".sub.ns.svc.cluster.local", ""},
		"65 characters":        {corev1.PodSpec{Hostname: whole + "h", Subdomain: "sub", SetHostnameAsFQDN: ptr.To(true)}, "", "65 characters, at most 64"},
		"override":             {corev1.PodSpec{Hostname: "h", Subdomain: "sub", HostnameOverride: ptr.To("o.example")}, "o.example", ""},
		"override that is cut": {corev1.PodSpec{HostnameOverride: ptr.To(strings.Repeat("o", 62) + ".x")}, strings.Repeat("o", 62), ""},
	} {
		pod := podWith()
		pod.Spec = c.spec
		got, err := KernelHostname(pod, domain)
		if got != c.want || (err != nil) != (c.fail != "") || err != nil && !strings.Contains(err.Error(), c.fail) {
			t.Errorf("PL-26 %s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// TestWriteEtcHosts proves PL-12: the file that containers have mounted is the one that is updated.
func TestWriteEtcHosts(t *testing.T) {
	m, _ := manager(t)
	name, err := m.WriteEtcHosts(podWith(), []string{"10.1.0.5"}, "")
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := m.WriteEtcHosts(podWith(), []string{"10.1.0.66"}, ""); again != name || err != nil {
		t.Error(again, err)
	}
	after, err := os.Stat(name)
	if err != nil || !os.SameFile(before, after) || after.Mode().Perm() != 0o644 {
		t.Error("another file:", err)
	}
	if data, err := os.ReadFile(name); err != nil || !strings.Contains(string(data), "10.1.0.66\tweb") || strings.Contains(string(data), "10.1.0.5") {
		t.Errorf("%s %v", data, err)
	}
}

// TestTerminationLog proves PL-11: the file is there for any user to write, and its end is read.
func TestTerminationLog(t *testing.T) {
	m, _ := manager(t)
	if got, err := m.TerminationMessage("uid-1", "main", 0); got != "" || err != nil {
		t.Error(got, err)
	}
	name, err := m.TerminationLog("uid-1", "main", 3)
	if err != nil || !strings.HasSuffix(name, "uid-1/containers/main/3") {
		t.Fatal(name, err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o666 {
		t.Error(info, err)
	}
	if err := os.WriteFile(name, []byte(strings.Repeat("x", 5000)+"the end"), 0o666); err != nil {
		t.Fatal(err)
	}
	if again, err := m.TerminationLog("uid-1", "main", 3); again != name || err != nil {
		t.Error(again, err)
	}
	got, err := m.TerminationMessage("uid-1", "main", 3)
	if err != nil || len(got) != MaxTerminationMessage || !strings.HasSuffix(got, "xthe end") {
		t.Error(len(got), err)
	}
}
