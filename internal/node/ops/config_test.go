// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

func ptr[T any](v T) *T { return &v }

func basePod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u1", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "img"}}}}
	podspec.SetDefaults(p)
	if change != nil {
		change(p)
	}
	return p
}

// TestDNSConfig holds the resolv.conf that a pod gets (PL-12).
func TestDNSConfig(t *testing.T) {
	host := &runtimeapi.DNSConfig{Servers: []string{"9.9.9.9"}, Searches: []string{"lan"}, Options: []string{"timeout:1"}}
	node := Node{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "cluster.local", HostDNS: host}
	cluster := []string{"shop.svc.cluster.local", "svc.cluster.local", "cluster.local", "lan"}
	for _, c := range []struct {
		name   string
		node   Node
		change func(*corev1.Pod)
		want   *runtimeapi.DNSConfig
	}{
		{"ClusterFirst", node, nil, &runtimeapi.DNSConfig{Servers: []string{"10.96.0.10"}, Searches: cluster, Options: []string{"ndots:5"}}},
		{"ClusterFirst without a cluster DNS is the host's", Node{HostDNS: host}, nil, host},
		{"Default", node, func(p *corev1.Pod) { p.Spec.DNSPolicy = corev1.DNSDefault }, host},
		{"ClusterFirst on the host's network is the host's", node, func(p *corev1.Pod) { p.Spec.HostNetwork = true }, host},
		{"ClusterFirstWithHostNet", node, func(p *corev1.Pod) {
			p.Spec.HostNetwork, p.Spec.DNSPolicy = true, corev1.DNSClusterFirstWithHostNet
		}, &runtimeapi.DNSConfig{Servers: []string{"10.96.0.10"}, Searches: cluster, Options: []string{"ndots:5"}}},
		{"None", node, func(p *corev1.Pod) {
			p.Spec.DNSPolicy = corev1.DNSNone
			p.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"1.1.1.1"}, Searches: []string{"a.b"}}
		}, &runtimeapi.DNSConfig{Servers: []string{"1.1.1.1"}, Searches: []string{"a.b"}}},
		{"the pod's own config is added, its options count", node, func(p *corev1.Pod) {
			p.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"1.1.1.1", "10.96.0.10"}, Searches: []string{"lan", "a.b"},
				Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: ptr("2")}, {Name: "edns0"}}}
		}, &runtimeapi.DNSConfig{Servers: []string{"10.96.0.10", "1.1.1.1"}, Searches: append(slices.Clone(cluster), "a.b"), Options: []string{"ndots:2", "edns0"}}},
	} {
		t.Run("PL-12 "+c.name, func(t *testing.T) {
			got := SandboxConfig(SandboxInput{Pod: basePod(c.change), Node: c.node}).GetDnsConfig()
			if got.String() != c.want.String() {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	if host.String() != `servers:"9.9.9.9"  searches:"lan"  options:"timeout:1"` && len(host.GetOptions()) != 1 {
		t.Errorf("the host's own config was changed: %v", host)
	}
}

// TestSandboxConfig holds the rest of a sandbox's config (PL-07, PL-12, PID-01, PID-02).
func TestSandboxConfig(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	p := basePod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080, Protocol: corev1.ProtocolTCP},
			{ContainerPort: 53, HostPort: 53, HostIP: "127.0.0.1", Protocol: corev1.ProtocolUDP}, {ContainerPort: 9}}
		p.Spec.InitContainers = []corev1.Container{
			{Name: "init", Ports: []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}},
			{Name: "proxy", RestartPolicy: &always, Ports: []corev1.ContainerPort{{ContainerPort: 1, HostPort: 1, Protocol: corev1.ProtocolSCTP}}}}
		p.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr(int64(7)), SupplementalGroups: []int64{3},
			RunAsUser: ptr(int64(5)), RunAsGroup: ptr(int64(6)), Sysctls: []corev1.Sysctl{{Name: "net.core.somaxconn", Value: "9"}}}
	})
	c := SandboxConfig(SandboxInput{Pod: p, Attempt: 2, LogFolder: "/logs", CgroupParent: "/kubepods/u1"})
	var ports []string
	for _, m := range c.GetPortMappings() {
		ports = append(ports, m.String())
	}
	if got := len(ports); got != 3 {
		t.Errorf("host ports are those of mains and sidecars, got %v", ports)
	}
	for _, m := range c.GetPortMappings() {
		if m.GetContainerPort() == 53 && (m.GetProtocol() != runtimeapi.Protocol_UDP || m.GetHostIp() != "127.0.0.1") {
			t.Errorf("port 53 is mapped as %v", m)
		}
	}
	if got := c.GetMetadata(); got.GetAttempt() != 2 || got.GetUid() != "u1" || got.GetName() != "web" || got.GetNamespace() != "shop" {
		t.Errorf("metadata %v", got)
	}
	if c.GetHostname() != "web" || c.GetLogDirectory() != "/logs" || c.GetLinux().GetCgroupParent() != "/kubepods/u1" {
		t.Errorf("hostname %q, logs %q, cgroup %q", c.GetHostname(), c.GetLogDirectory(), c.GetLinux().GetCgroupParent())
	}
	s := c.GetLinux().GetSecurityContext()
	if !reflect.DeepEqual(s.GetSupplementalGroups(), []int64{3, 7}) || s.GetRunAsUser().GetValue() != 5 || s.GetRunAsGroup().GetValue() != 6 {
		t.Errorf("security context %v", s)
	}
	if c.GetLinux().GetSysctls()["net.core.somaxconn"] != "9" || c.GetLabels()["app"] != "web" || c.GetLabels()["io.kubernetes.pod.uid"] != "u1" {
		t.Errorf("sysctls %v, labels %v", c.GetLinux().GetSysctls(), c.GetLabels())
	}
	p.Spec.HostNetwork = true
	if c := SandboxConfig(SandboxInput{Pod: p}); len(c.GetPortMappings()) != 0 || c.GetHostname() != "" ||
		c.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() != runtimeapi.NamespaceMode_NODE {
		t.Errorf("on the host's network: ports %v, hostname %q, namespaces %v", c.GetPortMappings(), c.GetHostname(), c.GetLinux().GetSecurityContext().GetNamespaceOptions())
	}
}

// TestContainerConfig holds what a container is given besides its security context (PL-06, PL-09, PL-11, DC-10).
func TestContainerConfig(t *testing.T) {
	p := basePod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Command = []string{"sh", "-c", "echo $(GREETING) $$(NOT)"}
	})
	in := ContainerInput{Pod: p, Container: &p.Spec.Containers[0], Attempt: 3, Streak: 2, Image: &runtimeapi.Image{Id: "sha256:1"},
		Env:       []*runtimeapi.KeyValue{{Key: "GREETING", Value: []byte("hello")}},
		HostsFile: "/pods/u1/etc-hosts", TerminationLog: "/pods/u1/containers/main/3"}
	c, err := ContainerConfig(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.GetCommand(), "|"); got != "sh|-c|echo hello $(NOT)" {
		t.Errorf("PL-06 command %q", got)
	}
	if c.GetLogPath() != "main/3.log" || c.GetMetadata().GetAttempt() != 3 || c.GetImage().GetImage() != "sha256:1" {
		t.Errorf("PL-09 log path %q, metadata %v, image %v", c.GetLogPath(), c.GetMetadata(), c.GetImage())
	}
	if c.GetLabels()["io.kubernetes.container.type"] != "REGULAR" || c.GetAnnotations()["wherry.dev/streak"] != "2" || c.GetAnnotations()["wherry.dev/image"] != "img" {
		t.Errorf("DC-10 labels %v, annotations %v", c.GetLabels(), c.GetAnnotations())
	}
	at := func(c *runtimeapi.ContainerConfig) (paths []string) {
		for _, m := range c.GetMounts() {
			paths = append(paths, m.GetContainerPath())
		}
		return paths
	}
	if got := at(c); !slices.Equal(got, []string{"/etc/hosts", "/dev/termination-log"}) {
		t.Errorf("PL-11 mounts %v", got)
	}
	in.Mounts = []*runtimeapi.Mount{{ContainerPath: "/etc/hosts/"}, {ContainerPath: "/dev/termination-log"}}
	if c, err = ContainerConfig(in); err != nil || len(c.GetMounts()) != 2 {
		t.Errorf("what the pod mounts itself is mounted twice: %v, %v", at(c), err)
	}
}

// TestUser holds whom a container runs as, and what is refused (PL-07).
func TestUser(t *testing.T) {
	number := &runtimeapi.Image{Uid: &runtimeapi.Int64Value{Value: 1000}}
	named := &runtimeapi.Image{Username: "nobody"}
	for _, c := range []struct {
		name  string
		image *runtimeapi.Image
		pod   *corev1.PodSecurityContext
		own   *corev1.SecurityContext
		user  int64
		as    string
		fails string
	}{
		{name: "root when nobody says otherwise", image: &runtimeapi.Image{}},
		{name: "the image's number", image: number, user: 1000},
		{name: "the image's name", image: named, as: "nobody"},
		{name: "the pod's over the image's", image: number, pod: &corev1.PodSecurityContext{RunAsUser: ptr(int64(5))}, user: 5},
		{name: "the container's over the pod's", image: named, pod: &corev1.PodSecurityContext{RunAsUser: ptr(int64(5))}, own: &corev1.SecurityContext{RunAsUser: ptr(int64(6))}, user: 6},
		{name: "runAsNonRoot with a number", image: number, own: &corev1.SecurityContext{RunAsNonRoot: ptr(true)}, user: 1000},
		{name: "runAsNonRoot and the image's root", image: &runtimeapi.Image{}, own: &corev1.SecurityContext{RunAsNonRoot: ptr(true)}, fails: "image will run as root"},
		{name: "runAsNonRoot and user 0", image: number, pod: &corev1.PodSecurityContext{RunAsNonRoot: ptr(true), RunAsUser: ptr(int64(0))}, fails: "runAsUser breaks non-root policy"},
		{name: "runAsNonRoot and a name", image: named, own: &corev1.SecurityContext{RunAsNonRoot: ptr(true)}, fails: "non-numeric user (nobody)"},
		{name: "runAsNonRoot of the pod, lifted by the container", image: &runtimeapi.Image{}, pod: &corev1.PodSecurityContext{RunAsNonRoot: ptr(true)}, own: &corev1.SecurityContext{RunAsNonRoot: ptr(false)}},
	} {
		t.Run("PL-07 "+c.name, func(t *testing.T) {
			p := basePod(func(p *corev1.Pod) {
				p.Spec.SecurityContext, p.Spec.Containers[0].SecurityContext = c.pod, c.own
			})
			got, err := containerSecurity(ContainerInput{Pod: p, Container: &p.Spec.Containers[0], Image: c.image})
			switch {
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
				t.Errorf("got %v, want an error that says %q", err, c.fails)
			case c.fails != "":
			case err != nil:
				t.Error(err)
			case got.GetRunAsUsername() != c.as || c.as == "" && got.GetRunAsUser().GetValue() != c.user:
				t.Errorf("runs as %v %q", got.GetRunAsUser(), got.GetRunAsUsername())
			}
		})
	}
}

// TestContainerSecurity holds the rest of a container's security context (PL-07).
func TestContainerSecurity(t *testing.T) {
	p := basePod(func(p *corev1.Pod) {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: ptr(false), ReadOnlyRootFilesystem: ptr(true),
			Capabilities:   &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}, Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: ptr("../../etc/x.json")}}
	})
	in := ContainerInput{Pod: p, Container: &p.Spec.Containers[0], Image: &runtimeapi.Image{}, Node: Node{SeccompDir: "/data/seccomp"}}
	got, err := containerSecurity(in)
	if err != nil {
		t.Fatal(err)
	}
	if !got.GetNoNewPrivs() || !got.GetReadonlyRootfs() || got.GetCapabilities().GetAddCapabilities()[0] != "NET_ADMIN" || got.GetCapabilities().GetDropCapabilities()[0] != "ALL" {
		t.Errorf("security context %v", got)
	}
	if ref := got.GetSeccomp().GetLocalhostRef(); ref != "/data/seccomp/etc/x.json" {
		t.Errorf("a localhost profile leads to %s, out of its folder", ref)
	}
	if len(got.GetMaskedPaths()) == 0 || len(got.GetReadonlyPaths()) == 0 {
		t.Error("nothing of /proc is hidden from an ordinary container")
	}
	in.Container.SecurityContext = &corev1.SecurityContext{Privileged: ptr(true)}
	if got, err = containerSecurity(in); err != nil || !got.GetPrivileged() || len(got.GetMaskedPaths()) != 0 {
		t.Errorf("privileged: %v, %v", got, err)
	}
	if got.GetSeccomp().GetProfileType() != runtimeapi.SecurityProfile_RuntimeDefault {
		t.Errorf("the pod's seccomp profile counts where the container has none, got %v", got.GetSeccomp())
	}
}
