// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/leaktest"
)

// fake is an image service: a set of images on the node, and a script for pulls.
type fake struct {
	runtimeapi.UnimplementedImageServiceServer
	mu      sync.Mutex
	present map[string]bool
	names   map[string][]string // of the images that are present
	ids     map[string]string   // of those that have another than id-of-…
	broken  error
	pulls   []string // image and user
	script  func(ctx context.Context, image, user string) error
}

func (f *fake) ImageStatus(_ context.Context,
	r *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return nil, f.broken
	}
	if !f.present[r.Image.Image] {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	id := f.ids[r.Image.Image]
	if id == "" {
		id = "id-of-" + r.Image.Image
	}
	return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: id, Size: 123,
		RepoTags: f.names[r.Image.Image]}}, nil
}

func (f *fake) PullImage(ctx context.Context, r *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	f.mu.Lock()
	f.pulls = append(f.pulls, r.Image.Image+" "+r.GetAuth().GetUsername())
	script := f.script
	f.mu.Unlock()
	if script != nil {
		if err := script(ctx, r.Image.Image, r.GetAuth().GetUsername()); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.present[r.Image.Image] = true
	return &runtimeapi.PullImageResponse{ImageRef: "id-of-" + r.Image.Image}, nil
}

func (f *fake) pulled() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.pulls)
}

// world is a fake, a Puller on it, and what the Puller told.
type world struct {
	*fake
	*Puller
	mu     sync.Mutex
	events []string
}

func start(t *testing.T, cfg Config, present ...string) *world {
	t.Helper()
	others := goleak.IgnoreCurrent() // of the container runtime of another test
	w := &world{fake: &fake{present: map[string]bool{}}}
	for _, p := range present {
		w.present[p] = true
	}
	l := bufconn.Listen(1 << 16)
	srv := grpc.NewServer()
	runtimeapi.RegisterImageServiceServer(srv, w.fake)
	go func() { _ = srv.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///fake", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); srv.Stop(); leaktest.None(t, others) })
	cfg.Images = runtimeapi.NewImageServiceClient(conn)
	cfg.Progress = func(e Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e.Type+" "+e.Reason+" "+durations.ReplaceAllString(e.Message, "<t>"))
	}
	w.Puller = New(cfg)
	return w
}

var durations = regexp.MustCompile(`\b[0-9.]+(m|µ|n)?s\b`)

func (w *world) told() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

func podOf(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "u-" + "1"}}
}

func container(image string, policy corev1.PullPolicy) *corev1.Container {
	return &corev1.Container{Name: "main", Image: image, ImagePullPolicy: policy}
}

// TestEnsure proves PL-03: every policy with the image there and not, errors, and the events in the kubelet's words.
func TestEnsure(t *testing.T) {
	down := func(context.Context, string, string) error { return status.Error(codes.NotFound, "a:v1: not found") }
	for name, c := range map[string]struct {
		image   string
		policy  corev1.PullPolicy
		present bool
		broken  error
		script  func(ctx context.Context, image, user string) error
		want    string // id or reason
		events  []string
	}{
		"IfNotPresent, there": {image: "a:v1", policy: corev1.PullIfNotPresent, present: true, want: "id-of-a:v1",
			events: []string{`Normal Pulled Container image "a:v1" already present on machine and can be accessed by the pod`}},
		"IfNotPresent, not there": {image: "a:v1", policy: corev1.PullIfNotPresent, want: "id-of-a:v1",
			events: []string{`Normal Pulling Pulling image "a:v1"`,
				`Normal Pulled Successfully pulled image "a:v1" in <t> (<t> including waiting). Image size: 123 bytes.`}},
		"Always, there": {image: "a:v1", policy: corev1.PullAlways, present: true, want: "id-of-a:v1",
			events: []string{`Normal Pulling Pulling image "a:v1"`,
				`Normal Pulled Successfully pulled image "a:v1" in <t> (<t> including waiting). Image size: 123 bytes.`}},
		"Always, there, but the registry has it no more": {image: "a:v1", policy: corev1.PullAlways, present: true,
			script: down, want: ErrImagePull, events: []string{`Normal Pulling Pulling image "a:v1"`,
				`Warning Failed Failed to pull image "a:v1": image docker.io/library/a:v1 not found in registry docker.io`}},
		"Never, there": {image: "a:v1", policy: corev1.PullNever, present: true, want: "id-of-a:v1",
			events: []string{`Normal Pulled Container image "a:v1" already present on machine and can be accessed by the pod`}},
		"PL-03 a name of wherry's own": {image: "wherry.dev/app:1", policy: corev1.PullAlways, want: ErrImageNeverPull,
			events: []string{`Warning ErrImageNeverPull Container image "wherry.dev/app:1" is not on this node: wherry.dev/app:1 is never fetched from a registry, as its name is one of wherry's own: import it (wherry image import), or give it another name`}},
		"DC-01 the built-in image, not there": {image: "wherry.dev/toolbox", policy: corev1.PullAlways,
			want:   ErrImageNeverPull,
			events: []string{`Warning ErrImageNeverPull Container image "wherry.dev/toolbox" is not on this node: it is built into wherry, which can load it only into containerd (its own, or that of --container-runtime-endpoint); use another image`}},
		"Never, not there": {image: "a:v1", policy: corev1.PullNever, want: ErrImageNeverPull,
			events: []string{`Warning ErrImageNeverPull Container image "a:v1" is not present with pull policy of Never`}},
		"no tag means latest": {image: "a", policy: corev1.PullIfNotPresent, want: "id-of-a:latest",
			events: []string{`Normal Pulling Pulling image "a"`,
				`Normal Pulled Successfully pulled image "a" in <t> (<t> including waiting). Image size: 123 bytes.`}},
		"bad name": {image: "A:v1", policy: corev1.PullAlways, want: InvalidImageName,
			events: []string{`Warning InspectFailed Failed to apply default image tag "A:v1": couldn't parse image name "A:v1": invalid reference format: repository name (library/A) must be lowercase (did you mean "a:v1"?)`}},
		"runtime in trouble": {image: "a:v1", policy: corev1.PullIfNotPresent,
			broken: status.Error(codes.Internal, "oh"), want: ImageInspectError,
			events: []string{`Warning InspectFailed Failed to inspect image "a:v1": rpc error: code = Internal desc = oh`}},
	} {
		t.Run("PL-03 "+name, func(t *testing.T) {
			w := start(t, Config{})
			w.fake.broken, w.script = c.broken, c.script
			if c.present {
				w.present[c.image] = true
			}
			got, err := w.Ensure(t.Context(), podOf("p"), container(c.image, c.policy))
			if err != nil {
				var e *Error
				if !errors.As(err, &e) {
					t.Fatalf("%T %v", err, err)
				}
				got = e.Reason
			}
			if got != c.want || !slices.Equal(w.told(), c.events) {
				t.Errorf("got %q (%v), want %q\nevents %q\nwant   %q", got, err, c.want, w.told(), c.events)
			}
		})
	}
}

// TestCredentials proves PL-03: the pod's secrets, then the node's config, each tried until one is let in; a network
// error ends it; a missing secret is told of and does not stop a pull.
func TestCredentials(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pull"},
		Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{".dockerconfigjson": []byte(`{"auths":{"r.example/team":{"username":"wrong"},"r.example":{"username":"old"}}}`)}}
	config := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(config, []byte(`{"auths":{"r.example":{"username":"right"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w := start(t, Config{DockerConfig: config, PullSecrets: func(context.Context,
		*corev1.Pod) ([]*corev1.Secret, []string, error) {
		return []*corev1.Secret{secret}, []string{"gone"}, nil
	}})
	w.script = func(_ context.Context, _, user string) error {
		if user != "right" {
			return status.Error(codes.Unknown, "401 Unauthorized")
		}
		return nil
	}
	if id, err := w.Ensure(t.Context(), podOf("p"), container("r.example/team/app:v1", "")); err != nil || id == "" {
		t.Fatal(id, err)
	}
	if want := []string{"r.example/team/app:v1 wrong", "r.example/team/app:v1 old",
		"r.example/team/app:v1 right"}; !slices.Equal(w.pulled(), want) {
		t.Errorf("pulls %q", w.pulled())
	}
	if want := "Warning FailedToRetrieveImagePullSecret Unable to retrieve some image pull secrets (gone); attempting to pull the image may not succeed."; w.told()[0] != want {
		t.Errorf("events %q", w.told())
	}

	w.script = func(context.Context, string, string) error {
		return status.Error(codes.Unknown, "dial tcp 192.0.2.1:443: connect: connection refused")
	}
	before := len(w.pulled())
	if _, err := w.Ensure(t.Context(), podOf("p"), container("r.example/team/app:v2", "")); err == nil ||
		len(w.pulled()) != before+1 {
		t.Errorf("an unreachable registry was tried with every credential: %q, %v", w.pulled()[before:], err)
	}
}

// TestShared proves PL-03: one pull serves all with the same credentials, goes on when one of them leaves and ends when
// the last has; pulls with other credentials are their own.
func TestShared(t *testing.T) {
	logins := map[string]string{"a": "alice", "b": "alice", "c": "carol"}
	w := start(t, Config{PullSecrets: func(_ context.Context, pod *corev1.Pod) ([]*corev1.Secret, []string, error) {
		return []*corev1.Secret{{Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{
			".dockercfg": []byte(`{"r.example":{"username":"` + logins[pod.Name] + `"}}`)}}}, nil, nil
	}})
	arrived, release, ended := make(chan string, 9), make(chan struct{}), make(chan error, 9)
	w.script = func(ctx context.Context, _, user string) error {
		arrived <- user
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			ended <- ctx.Err()
			return ctx.Err()
		}
	}
	type answer struct {
		id  string
		err error
	}
	ask := func(ctx context.Context, pod, image string) chan answer {
		ch := make(chan answer, 1)
		go func() {
			id, err := w.Ensure(ctx, podOf(pod), container(image, corev1.PullAlways))
			ch <- answer{id, err}
		}()
		return ch
	}
	leaves, leave := context.WithCancel(t.Context())
	first := ask(leaves, "a", "r.example/x:1")
	if user := <-arrived; user != "alice" {
		t.Fatal(user)
	}
	second := ask(t.Context(), "b", "r.example/x:1")
	third := ask(t.Context(), "c", "r.example/x:1")
	if user := <-arrived; user != "carol" {
		t.Fatal(user)
	}
	w.waitRiders(t, 3)
	leave()
	if a := <-first; !errors.Is(a.err, context.Canceled) {
		t.Error(a)
	}
	close(release)
	for _, ch := range []chan answer{second, third} {
		if a := <-ch; a.err != nil || a.id == "" {
			t.Error(a)
		}
	}
	if len(w.pulled()) != 2 {
		t.Errorf("pulls %q", w.pulled())
	}

	release = make(chan struct{})
	alone, stop := context.WithCancel(t.Context())
	last := ask(alone, "a", "r.example/y:1")
	<-arrived
	stop()
	if a := <-last; !errors.Is(a.err, context.Canceled) {
		t.Error(a)
	}
	<-ended // the runtime was told
}

// waitRiders returns once n callers wait for pulls.
func (w *world) waitRiders(t *testing.T, n int) {
	t.Helper()
	for {
		w.Puller.mu.Lock()
		riders := 0
		for _, f := range w.flights {
			riders += f.riders
		}
		w.Puller.mu.Unlock()
		if riders == n {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("test ended before all callers waited")
		default:
			runtime.Gosched()
		}
	}
}

// TestParallel proves PL-03: no more pulls at once for a namespace than configured, and all get done.
func TestParallel(t *testing.T) {
	w := start(t, Config{Parallel: 3}) // two from one registry
	var mu sync.Mutex
	now, most := 0, 0
	arrived, release := make(chan struct{}, 7), make(chan struct{})
	w.script = func(context.Context, string, string) error {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		arrived <- struct{}{}
		<-release
		mu.Lock()
		now--
		mu.Unlock()
		return nil
	}
	var wg sync.WaitGroup
	for _, image := range []string{"a:1", "b:1", "c:1", "d:1", "e:1", "f:1", "g:1"} {
		wg.Go(func() {
			if _, err := w.Ensure(t.Context(), podOf("p"), container(image, corev1.PullAlways)); err != nil {
				t.Error(err)
			}
		})
	}
	w.waitRiders(t, 7)
	<-arrived
	<-arrived // two are under way at once
	close(release)
	wg.Wait()
	if most != 2 || len(w.pulled()) != 7 {
		t.Errorf("%d at once, %d pulls", most, len(w.pulled()))
	}
}

// TestIDs proves RS-12: an image id is not asked of a registry, and a name that the runtime takes for an id is not
// there.
func TestIDs(t *testing.T) {
	const id = "sha256:5905453c494f"
	w := start(t, Config{})
	_, err := w.Ensure(t.Context(), podOf("p"), container(id, corev1.PullAlways))
	if e := (*Error)(nil); !errors.As(err, &e) || e.Reason != ErrImageNeverPull || len(w.pulled()) > 0 {
		t.Errorf("an id that is not here: %v, pulled %v", err, w.pulled())
	}

	w = start(t, Config{}, id, "5905453c494f:latest")
	w.ids = map[string]string{id: id + "0000", "5905453c494f:latest": id + "0000"}
	w.names = map[string][]string{"5905453c494f:latest": {"evil.test/evil:1"}}
	if got, err := w.Ensure(t.Context(), podOf("p"), container(id, corev1.PullAlways)); err != nil ||
		got != id+"0000" || len(w.pulled()) > 0 {
		t.Errorf("an id that is here: %s, %v, pulled %v", got, err, w.pulled())
	}
	_, err = w.Ensure(t.Context(), podOf("p"), container("5905453c494f", corev1.PullNever))
	if e := (*Error)(nil); !errors.As(err, &e) || e.Reason != ErrImageNeverPull {
		t.Errorf("a name taken for an id: %v", err)
	}
}
