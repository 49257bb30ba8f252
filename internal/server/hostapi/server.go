// SPDX-License-Identifier: Apache-2.0

package hostapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/imagename"
	"github.com/wherryproject/wherry/internal/registry"
)

// Archives reads and writes image archives. Only the embedded runtime can: the CRI has no call for it.
type Archives interface {
	// Import loads all images of a tar archive and returns their names.
	Import(ctx context.Context, archive io.Reader) ([]string, error)
	// Export writes the named images as one OCI archive.
	Export(ctx context.Context, archive io.Writer, refs ...string) error
	// Tag gives an image a further name, in place of the image that had it, and returns the name spelled out.
	Tag(ctx context.Context, ref, name string) (string, error)
	// Untag takes a name, spelled out, from an image that has others.
	Untag(ctx context.Context, name string) error
}

// Server is the serving side.
type Server struct {
	Info       Info
	Images     runtimeapi.ImageServiceClient
	Containers runtimeapi.RuntimeServiceClient
	Archives   Archives // nil with an external runtime
	// Pull fetches an image, with a login, or if that is nil with those of the node.
	Pull func(ctx context.Context, ref string, login *registry.Login) error
	// Transfers are the parts of images that are being fetched; nil if the runtime does not report them.
	Transfers func(ctx context.Context) ([]Transfer, error)
	// DropPulls gives up what pulls that failed have left; nil if the runtime keeps nothing of them.
	DropPulls func(ctx context.Context) error
	// Login keeps a login of the node at a registry, Logout forgets it.
	Login  func(ctx context.Context, registry string, login registry.Login) (LoggedIn, error)
	Logout func(registry string) (LoggedIn, error)
	// Backup writes a backup. An error before the first byte is the whole answer.
	Backup func(ctx context.Context, to io.Writer, what BackupParts) error
	// Drain ends the node's pods and takes no others, until it is called with on false.
	Drain func(ctx context.Context, on bool) error
}

// Info says who serves.
type Info struct {
	PID     int    `json:"pid"`
	Version string `json:"version"`
	URL     string `json:"url"`
	DataDir string `json:"dataDir"`
}

// Image is one image of the node.
type Image struct {
	ID      string   `json:"id"`
	Tags    []string `json:"tags,omitempty"`
	Digests []string `json:"digests,omitempty"`
	Size    uint64   `json:"size"`
	Pinned  bool     `json:"pinned,omitempty"`
	BuiltIn bool     `json:"builtIn,omitempty"` // made from the program; it cannot be removed
	// Spec is what the image itself says: platform, creation, entry point, environment. Only an inspection has it.
	Spec json.RawMessage `json:"spec,omitempty"`
}

// errorTrailer carries the error of an export that broke after its first byte.
const errorTrailer = "X-Wherry-Error"

// Handler returns the HTTP handler.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	answer := func(pattern string, do func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			v, err := do(r)
			if err != nil {
				refuse(w, err)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v) // an error here is the client's going away
		})
	}
	answer("GET /v1/server", func(*http.Request) (any, error) { return s.Info, nil })
	answer("POST /v1/drain", func(r *http.Request) (any, error) { return struct{}{}, s.Drain(r.Context(), true) })
	answer("DELETE /v1/drain", func(r *http.Request) (any, error) { return struct{}{}, s.Drain(r.Context(), false) })
	answer("GET /v1/images", s.list)
	answer("POST /v1/images/import", s.importArchive)
	answer("POST /v1/images/pull", s.pull)
	answer("DELETE /v1/images", s.remove)
	answer("GET /v1/images/inspect", s.inspect)
	answer("GET /v1/images/transfers", s.transfers)
	answer("POST /v1/images/tag", s.tag)
	answer("POST /v1/images/prune", s.prune)
	answer("POST /v1/registries/login", s.login)
	answer("POST /v1/registries/logout", s.logout)
	mux.HandleFunc("GET /v1/images/export", s.export)
	mux.HandleFunc("GET /v1/backup", s.backup)
	return mux
}

var errNoArchives = errors.New("an external container runtime cannot load or save archives for wherry; use that runtime's own tool (containerd: ctr -n k8s.io images import)")

func refuse(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if errors.Is(err, errNotFound) {
		code = http.StatusNotFound
	}
	http.Error(w, words(err), code)
}

// words strips gRPC's wrapping from a runtime's message.
func words(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}

func (s *Server) list(r *http.Request) (any, error) {
	got, err := s.Images.ListImages(r.Context(), &runtimeapi.ListImagesRequest{})
	if err != nil {
		return nil, err
	}
	out := []Image{}
	for _, i := range got.Images {
		out = append(out, asImage(i))
	}
	return out, nil
}

func asImage(i *runtimeapi.Image) Image {
	return Image{ID: i.Id, Tags: i.RepoTags, Digests: i.RepoDigests, Size: i.Size, Pinned: i.Pinned,
		BuiltIn: builtIn(i)}
}

func (s *Server) importArchive(r *http.Request) (any, error) {
	if s.Archives == nil {
		return nil, errNoArchives
	}
	names, err := s.Archives.Import(r.Context(), r.Body)
	if err != nil {
		// To its end, as the client sees the answer only when it could send all.
		_, _ = io.Copy(io.Discard, r.Body)
		return nil, fmt.Errorf("import: %w", err)
	}
	return names, nil
}

func (s *Server) pull(r *http.Request) (any, error) {
	ref := r.FormValue("ref")
	login, err := loginOf(r)
	if err == nil {
		err = s.Pull(r.Context(), ref, login)
	}
	if err != nil {
		return nil, fmt.Errorf("pull %s: %s", ref, words(err))
	}
	return s.find(r.Context(), ref)
}

var errNotFound = errors.New("no such image on this node; see wherry image ls")

func (s *Server) find(ctx context.Context, ref string) (*runtimeapi.Image, error) {
	got, err := s.Images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: ref}})
	if err != nil {
		return nil, err
	}
	if got.Image == nil {
		return nil, fmt.Errorf("%s: %w", ref, errNotFound)
	}
	return got.Image, nil
}

// builtIn reports whether an image is made from the program: the pods' first process, or the toolbox.
func builtIn(i *runtimeapi.Image) bool {
	return slices.ContainsFunc(i.GetRepoTags(), imagename.BuiltIn)
}

// remove refuses an image that is built in, as no pod or no debugger would start, and one that a container uses: its
// next restart would fail.
func (s *Server) remove(r *http.Request) (any, error) {
	ref := r.FormValue("ref")
	image, err := s.find(r.Context(), ref)
	if err != nil {
		return nil, err
	}
	if builtIn(image) {
		return nil, fmt.Errorf("%s is built into wherry and is needed to run or debug pods: it cannot be removed", ref)
	}
	if name := oneOfSeveral(image, ref); name != "" && s.Archives != nil {
		return []string{name}, s.Archives.Untag(r.Context(), name)
	}
	if r.FormValue("force") != "true" {
		containers, err := s.containers(r.Context())
		if err != nil {
			return nil, err
		}
		if users := usersOf(image, containers); len(users) > 0 {
			return nil, fmt.Errorf("%s is used by %s; delete that pod first, or use --force", ref, users[0])
		}
	}
	// By id: the CRI removes one name only when given a name, and the image would stay under its others.
	_,
		err = s.Images.RemoveImage(r.Context(),
		&runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: image.Id}})
	return image.RepoTags, err
}

// oneOfSeveral is the name, spelled out, by which an image was called that has others too; "" if it has no others, or
// was called by its id. With that name it loses nothing that a container needs.
func oneOfSeveral(image *runtimeapi.Image, ref string) string {
	named, err := imagename.Parse(ref)
	if err != nil || len(image.RepoTags) < 2 || !slices.Contains(image.RepoTags, named.Full) {
		return ""
	}
	return named.Full
}

func (s *Server) containers(ctx context.Context) ([]*runtimeapi.Container, error) {
	got, err := s.Containers.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	return got.GetContainers(), err
}

// usersOf are the containers, running or not, that an image is needed for.
func usersOf(image *runtimeapi.Image, containers []*runtimeapi.Container) (users []string) {
	names := append(append([]string{image.Id}, image.RepoTags...), image.RepoDigests...)
	for _, c := range containers {
		if slices.Contains(names, c.ImageRef) || slices.Contains(names, c.Image.GetImage()) || c.ImageId == image.Id {
			users = append(users, fmt.Sprintf("container %s of pod %s/%s", c.Labels["io.kubernetes.container.name"],
				c.Labels["io.kubernetes.pod.namespace"], c.Labels["io.kubernetes.pod.name"]))
		}
	}
	return users
}

func (s *Server) export(w http.ResponseWriter, r *http.Request) {
	if s.Archives == nil {
		refuse(w, errNoArchives)
		return
	}
	if err := r.ParseForm(); err != nil {
		refuse(w, err)
		return
	}
	refs := r.Form["ref"]
	for _, ref := range refs { // before the first byte, so that a wrong name leaves no file behind
		if _, err := s.find(r.Context(), ref); err != nil {
			refuse(w, err)
			return
		}
	}
	w.Header().Set("Content-Type", "application/x-tar")
	w.Header().Set("Trailer", errorTrailer)
	if err := s.Archives.Export(r.Context(), w, refs...); err != nil {
		w.Header().Set(errorTrailer, words(err))
	}
}
