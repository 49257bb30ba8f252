// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/ociimage"
	"github.com/wherryproject/wherry/test/images"
)

// PL-06, PL-12: a Go program with client-go's InClusterConfig lists pods, from a pod on the bridge and from one on the host's network, of a
// server that listens on loopback only; also of one that was killed and is back. What is sent to another service is refused at once.
// The server has service addresses of its own, since those of the machine can be only one server's.
func TestInCluster(t *testing.T) {
	t.Parallel()
	s := own(t, ServerOptions{Args: []string{"--service-cidr", "10.98.77.0/24", "--bind-address", "127.0.0.1"}})
	k := kitOn(t, s)
	image := inClusterImage(k)
	k.letView()
	lists := func(name, network string) {
		t.Helper()
		k.lists(name, network, image)
	}
	lists("bridge", "false")
	lists("host", "true")

	k.up(`
metadata: {name: on-bridge}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	k.up(`
metadata: {name: on-host}
spec: {hostNetwork: true, containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	refused := func(when, address string) {
		t.Helper()
		for _, pod := range []string{"on-bridge", "on-host"} {
			began := time.Now()
			out := k.sh(pod, "c", "wget -O- http://"+address+" 2>&1 || true")
			if took := time.Since(began); !strings.Contains(out, "refused") || took > 50*time.Second {
				t.Errorf("%s: %s to %s: %q after %v", when, pod, address, out, took)
			}
		}
	}
	refused("a service that nobody carries", "10.98.77.9")
	refused("another port of the API's", "10.98.77.1:80")

	s.Kill()
	k.must(s.Start(context.Background()))
	lists("bridge-again", "false")
	lists("host-again", "true")
}

// inClusterImage imports the image of the client.
func inClusterImage(k *kit) string {
	k.t.Helper()
	archive := inClusterArchive(k)
	if out, err := k.Wherry(k.Context(), "image", "import", archive).CombinedOutput(); err != nil {
		k.t.Fatalf("import: %v: %s", err, out)
	}
	return inClusterRef
}

const inClusterRef = "wherry.test/incluster:1"

// inClusterArchive makes the archive of that image.
func inClusterArchive(k *kit) string {
	k.t.Helper()
	dir := k.t.TempDir()
	binary := filepath.Join(dir, "incluster")
	k.must(images.GoBuild(k.Context(), binary, "github.com/wherryproject/wherry/test/images/incluster"))
	data, err := os.ReadFile(binary)
	k.must(err)
	img, err := ociimage.Build(ociimage.Spec{Files: []ociimage.File{{Path: "/incluster", Data: data}}, Entrypoint: []string{"/incluster"}})
	k.must(err)
	archive, err := os.Create(filepath.Join(dir, "incluster.tar"))
	k.must(err)
	defer archive.Close()
	k.must(ociimage.WriteTar(archive, img, inClusterRef))
	return archive.Name()
}

// letView lets the pods of the default account list pods.
func (k *kit) letView() {
	k.t.Helper()
	_, err := k.Client.RbacV1().RoleBindings(k.Namespace).Create(k.ctx(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "view"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: k.Namespace}},
	}, metav1.CreateOptions{})
	k.must(err)
}

// lists runs the client, in a pod of that name.
func (k *kit) lists(name, network, image string) *corev1.Pod {
	k.t.Helper()
	pod, text := k.ran(`
metadata: {name: ` + name + `}
spec: {restartPolicy: Never, hostNetwork: ` + network + `, containers: [{name: c, image: ` + image + `}]}
`)
	if pod.Status.Phase != corev1.PodSucceeded || !strings.Contains("\n"+text, "\n"+name+"\n") {
		k.t.Errorf("%s: %s, it prints %q", name, pod.Status.Phase, text)
	}
	return pod
}
