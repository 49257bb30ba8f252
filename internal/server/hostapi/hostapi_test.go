// SPDX-License-Identifier: Apache-2.0

package hostapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/registry"
	"github.com/wherryproject/wherry/internal/server/hostapi/socket"
)

// node is a runtime with one image, used by one container.
type node struct {
	runtimeapi.ImageServiceClient
	runtimeapi.RuntimeServiceClient
	removed  []string
	imported string
	breaks   bool
	login    *registry.Login
	dropped  int // how often what failed pulls have left was given up
}

func (n *node) Tag(_ context.Context, ref, name string) (string, error) {
	return ref + " is " + name, nil
}

func (n *node) Untag(_ context.Context, name string) error {
	n.removed = append(n.removed, "the name "+name)
	return nil
}

var pause = &runtimeapi.Image{Id: "sha256:2", RepoTags: []string{"wherry.dev/pause:1"}, Size: 1, Pinned: true}

var web = &runtimeapi.Image{Id: "sha256:1", RepoTags: []string{"example/web:1"}, Size: 5}

func (n *node) ListImages(context.Context, *runtimeapi.ListImagesRequest, ...grpc.CallOption) (*runtimeapi.ListImagesResponse, error) {
	return &runtimeapi.ListImagesResponse{Images: []*runtimeapi.Image{web, pause, {Id: "sha256:3"}, {Id: "sha256:4", RepoTags: []string{"example/idle:1"}}}}, nil
}

func (n *node) ImageStatus(_ context.Context, r *runtimeapi.ImageStatusRequest, _ ...grpc.CallOption) (*runtimeapi.ImageStatusResponse, error) {
	if r.Image.Image == pause.Id {
		return &runtimeapi.ImageStatusResponse{Image: pause}, nil
	}
	if strings.HasSuffix(r.Image.Image, "both:1") || r.Image.Image == "sha256:5" {
		return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: "sha256:1", RepoTags: []string{"docker.io/example/both:1", "docker.io/example/other:1"}}}, nil
	}
	if r.Image.Image == "example/web:1" {
		return &runtimeapi.ImageStatusResponse{Image: web, Info: map[string]string{"info": `{"imageSpec":{"os":"linux"}}`}}, nil
	}
	return &runtimeapi.ImageStatusResponse{}, nil
}

func (n *node) RemoveImage(_ context.Context, r *runtimeapi.RemoveImageRequest, _ ...grpc.CallOption) (*runtimeapi.RemoveImageResponse, error) {
	n.removed = append(n.removed, r.Image.Image)
	return &runtimeapi.RemoveImageResponse{}, nil
}

func (n *node) ListContainers(context.Context, *runtimeapi.ListContainersRequest, ...grpc.CallOption) (*runtimeapi.ListContainersResponse, error) {
	return &runtimeapi.ListContainersResponse{Containers: []*runtimeapi.Container{{ImageId: "sha256:1", Labels: map[string]string{
		"io.kubernetes.container.name": "main", "io.kubernetes.pod.namespace": "default", "io.kubernetes.pod.name": "web"}}}}, nil
}

func (n *node) Import(_ context.Context, r io.Reader) ([]string, error) {
	b, err := io.ReadAll(r)
	n.imported = string(b)
	return []string{"example/new:1"}, err
}

func (n *node) Export(_ context.Context, w io.Writer, refs ...string) error {
	if _, err := io.WriteString(w, "archive of "+strings.Join(refs, " ")); err != nil || !n.breaks {
		return err
	}
	return errors.New("disk read error")
}

// serve returns a client over a real socket, whose path is longer than a socket's address when long is set.
func serve(t *testing.T, n *node, long bool) *Client {
	t.Helper()
	dir := t.TempDir()
	if long {
		dir = filepath.Join(dir, strings.Repeat("d", 100))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "wherry.sock")
	l, err := socket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Info: Info{PID: 7, URL: "https://x"}, Images: n, Containers: n, Archives: n,
		DropPulls: func(context.Context) error { n.dropped++; return nil },
		Pull: func(_ context.Context, ref string, login *registry.Login) error {
			n.login = login
			if ref == "example/web:1" {
				return nil
			}
			return status.Error(codes.NotFound, "no such tag")
		}}
	h := &http.Server{Handler: s.Handler()}
	go h.Serve(l)
	t.Cleanup(func() { h.Close() })
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v; want mode 0600", st.Mode(), err)
	}
	return NewClient(path)
}

func TestRoundTrip(t *testing.T) {
	for _, long := range []bool{false, true} {
		n := &node{}
		c := serve(t, n, long)
		ctx := t.Context()
		if info, err := c.Info(ctx); err != nil || info.PID != 7 || info.URL != "https://x" {
			t.Errorf("info: %+v, %v", info, err)
		}
		if l, err := c.List(ctx); err != nil || len(l) != 4 || l[0].Tags[0] != "example/web:1" || l[0].BuiltIn || !l[1].BuiltIn {
			t.Errorf("list: %+v, %v", l, err)
		}
		if names, err := c.Import(ctx, strings.NewReader("tar")); err != nil || n.imported != "tar" || len(names) != 1 {
			t.Errorf("import: %v, %v", names, err)
		}
		var out bytes.Buffer
		if err := c.Export(ctx, &out, []string{"example/web:1"}); err != nil || out.String() != "archive of example/web:1" {
			t.Errorf("export: %q, %v", out.String(), err)
		}
		if err := c.Pull(ctx, "example/web:1", &registry.Login{User: "ann", Password: "p"}); err != nil {
			t.Errorf("pull: %v", err)
		}
		if n.login == nil || n.login.User != "ann" {
			t.Errorf("pulled with the login %v", n.login)
		}
		if name, err := c.Tag(ctx, "example/web:1", "other:1"); err != nil || name != "sha256:1 is other:1" {
			t.Errorf("tag: %q, %v", name, err)
		}
		if i, err := c.Inspect(ctx, "example/web:1"); err != nil || i.ID != "sha256:1" || string(i.Spec) != `{"os":"linux"}` {
			t.Errorf("inspect: %+v, %v", i, err)
		}
		for all, want := range map[bool]string{false: "[sha256:3]", true: "[sha256:3 sha256:4]"} { // what is used and what is pinned stays
			n.removed = nil
			if l, err := c.Prune(ctx, all); err != nil || fmt.Sprint(n.removed) != want || len(l) != len(n.removed) {
				t.Errorf("prune %v: removed %v, told %v, %v", all, n.removed, l, err)
			}
		}
		if n.dropped != 2 {
			t.Errorf("of two that pruned, %d gave up what failed pulls had left", n.dropped)
		}
		n.removed = nil
		if tags, err := c.Remove(ctx, "example/web:1", true); err != nil || len(tags) != 1 || n.removed[0] != "sha256:1" {
			t.Errorf("remove: %v, %v (%v)", tags, err, n.removed)
		}
	}
}

// An image that has several names loses the one that is given, as docker's does, also while a container uses it; by its id it is
// removed whole, or not at all.
func TestOneNameOfSeveral(t *testing.T) {
	n := &node{}
	c := serve(t, n, false)
	ctx := t.Context()
	if tags, err := c.Remove(ctx, "example/both:1", false); err != nil || fmt.Sprint(tags, n.removed) != "[docker.io/example/both:1] [the name docker.io/example/both:1]" {
		t.Errorf("one name of two of an image in use: %v, %v (%v)", tags, err, n.removed)
	}
	n.removed = nil
	if _, err := c.Remove(ctx, "sha256:5", false); err == nil || !strings.Contains(err.Error(), "is used by") {
		t.Errorf("an image in use, by its id: %v", err)
	}
}

func TestErrorsAreSentences(t *testing.T) {
	n := &node{breaks: true}
	c := serve(t, n, false)
	ctx := t.Context()
	_, inUse := c.Remove(ctx, "example/web:1", false)
	_, builtIn := c.Remove(ctx, "sha256:2", true)
	_, unknown := c.Remove(ctx, "example/none:1", false)
	_, noServer := NewClient(filepath.Join(t.TempDir(), "wherry.sock")).List(ctx)
	cases := map[string]struct {
		err  error
		want string
	}{
		"image in use":       {inUse, "example/web:1 is used by container main of pod default/web; delete that pod first, or use --force"},
		"PL-03 built in":     {builtIn, "sha256:2 is built into wherry and is needed to run or debug pods: it cannot be removed"},
		"unknown image":      {unknown, "example/none:1: no such image on this node; see wherry image ls"},
		"export unknown":     {c.Export(ctx, io.Discard, []string{"example/none:1"}), "no such image on this node"},
		"export breaks":      {c.Export(ctx, io.Discard, []string{"example/web:1"}), "disk read error"},
		"pull":               {c.Pull(ctx, "example/none:1", nil), "pull example/none:1: no such tag"},
		"no server":          {noServer, ": start one with sudo wherry server --data-dir "},
		"no server at all":   {errors.New(NewClient(datadir.Socket(datadir.Default)).start()), "sudo wherry server, or give its folder with --data-dir"},
		"nothing was broken": {errors.New(strings.Join(n.removed, ",")), ""},
	}
	for name, tc := range cases {
		if tc.err == nil || !strings.Contains(tc.err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, tc.err, tc.want)
		}
	}
	if len(n.removed) > 0 {
		t.Errorf("removed %v in spite of errors", n.removed)
	}
	broken := errors.New("image app:1: parts of it are not there any more")
	if _, err := c.Import(t.Context(), iotest.ErrReader(broken)); err == nil || err.Error() != broken.Error() {
		t.Errorf("an archive that cannot be read: %v", err)
	}
}

func TestExternalRuntimeHasNoArchives(t *testing.T) {
	s := &Server{}
	if _, err := s.importArchive(&http.Request{}); err == nil || !strings.Contains(err.Error(), "ctr -n k8s.io images import") {
		t.Errorf("got %v", err)
	}
}
