// SPDX-License-Identifier: Apache-2.0

package kubeletconfig

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// PL-36: every field of the type is in exactly one table, and the tables have no others: none is passed over.
func TestEveryField(t *testing.T) {
	all := allTables()
	seen := map[string]bool{}
	var look func(prefix string, of reflect.Type)
	look = func(prefix string, of reflect.Type) {
		for i := range of.NumField() {
			f := of.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" { // kind and apiVersion
				continue
			}
			path, kind := prefix+name, f.Type
			if kind.Kind() == reflect.Pointer {
				kind = kind.Elem()
			}
			tables := 0
			for _, in := range []bool{all.flags[path] != nil, all.does[path] != nil, all.lacks[path] != ""} {
				if in {
					tables++
				}
			}
			switch seen[path] = true; {
			case tables > 1:
				t.Errorf("%s is in %d tables", path, tables)
			case tables == 0 && kind.Kind() == reflect.Struct && kind.Name() != "Duration":
				look(path+".", kind)
			case tables == 0:
				t.Errorf("%s is in no table", path)
			}
		}
	}
	look("", reflect.TypeFor[kubeletv1beta1.KubeletConfiguration]())
	for path := range all.flags {
		if !seen[path] {
			t.Errorf("the type has no field %s", path)
		}
	}
	for path := range all.does {
		if !seen[path] {
			t.Errorf("the type has no field %s", path)
		}
	}
	for path := range all.lacks {
		if !seen[path] {
			t.Errorf("the type has no field %s", path)
		}
	}
}

const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// PL-36: what Wherry has becomes flags, what it does anyway and what tools leave empty is no matter, and the rest is
// named. Files of the folder come after the file, in the order of their names.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "config.yaml"), head+`
authentication: {anonymous: {enabled: false}, webhook: {cacheTTL: 0s, enabled: true}, x509: {clientCAFile: /ca.crt}}
authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 0s, cacheUnauthorizedTTL: 0s}}
clusterDNS: [10.96.0.10, "fd00::a"]
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
topologyManagerPolicy: restricted
memoryManagerPolicy: Static
reservedMemory: [{numaNode: 0, limits: {memory: 1Gi, hugepages-2Mi: 4Mi}}, {numaNode: 1, limits: {memory: 512Mi}}]
nodeLeaseDurationSeconds: 7
cpuManagerPolicy: none
evictionHard: {memory.available: 200Mi, nodefs.available: "5%"}
logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}, verbosity: 0}
maxPods: 50
memorySwap: {}
podPidsLimit: 4096
registerWithTaints: [{key: dedicated, value: gpu, effect: NoSchedule}, {key: a.example/b, effect: NoExecute}]
staticPodURLHeader: {A: [b, c]}
syncFrequency: 0s
systemReserved: {cpu: 100m}
`)
	write(t, filepath.Join(dir, "d", "20.conf"), head+"maxPods: 70\n")
	write(t, filepath.Join(dir, "d", "10.conf"), head+"maxPods: 60\nevictionHard: {memory.available: 300Mi}\n")
	write(t, filepath.Join(dir, "d", "30.yaml"), "nonsense")
	got, err := Read(file, filepath.Join(dir, "d"))
	if err != nil {
		t.Fatal(err)
	}
	var flags []string
	for _, f := range got.Flags {
		flags = append(flags, f.Name+"="+f.Value)
	}
	want := []string{"client-ca-file=/ca.crt", "cluster-dns=10.96.0.10,fd00::a", "cpu-manager-policy=none",
		"eviction-hard=memory.available<300Mi,nodefs.available<5%", "max-pods=70", "memory-manager-policy=Static",
		"pod-max-pids=4096",
		"register-with-taints=dedicated=gpu:NoSchedule,a.example/b:NoExecute", "reserved-memory=0:hugepages-2Mi=4Mi,memory=1Gi;1:memory=512Mi", "manifest-url-header=A:b,A:c",
		"topology-manager-policy=restricted"}
	if !slices.Equal(flags, want) {
		t.Errorf("flags %q, want %q", flags, want)
	}
	if len(got.Ignored) != 2 || !strings.HasPrefix(got.Ignored[0], "nodeLeaseDurationSeconds: 7 (it is always 40") ||
		!strings.HasPrefix(got.Ignored[1], `systemReserved: {"cpu":"100m"} (`) {
		t.Errorf("named are %q", got.Ignored)
	}
}

// PL-36: what is no such file is refused, with its name and the reason.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for text, say := range map[string]string{
		head + "maxPod: 1\n":              `unknown field "maxPod"`,
		head + "maxPods: many\n":          "maxPods",
		head + "maxPods: 1\nmaxPods: 2\n": "already set",
		"kind: Pod\napiVersion: v1\n":     `kind "Pod" of apiVersion "v1": it must be a KubeletConfiguration`,
		head + "registerWithTaints: [{key: a, effect: NoExecute, timeAdded: 2030-01-01T00:00:00Z}]\n": "registerWithTaints: timeAdded of taint a: leave it out",
		head + "clusterDNS: ['a,b']\n": "clusterDNS: \"a,b\": a comma cannot be in a value",
	} {
		file := write(t, filepath.Join(dir, "f"), text)
		if _, err := Read(file, ""); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Read(filepath.Join(dir, "none"), ""); err == nil {
		t.Error("a file that does not exist was read")
	}
}
