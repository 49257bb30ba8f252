// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/imagename"
	"github.com/wherryproject/wherry/internal/node/pullrecord"
	"github.com/wherryproject/wherry/internal/podspec"
)

// DefaultParallel is how many images are pulled at once for a namespace when Config does not say.
const DefaultParallel = 5

// Config of a Puller. Images is required.
type Config struct {
	// Images is the runtime's image service.
	Images runtimeapi.ImageServiceClient
	// PullSecrets gives the pod's pull secrets that exist and the names of those that do not. Nil: pods have none.
	PullSecrets func(ctx context.Context, pod *corev1.Pod) (found []*corev1.Secret, missing []string, err error)
	// DockerConfig is the path of the node's own docker config.json, read again at every pull; it need not exist. "":
	// none.
	DockerConfig string
	// Parallel is the number of pulls at once for each namespace; 0 means DefaultParallel. One registry gets at most
	// one less.
	Parallel int
	// Records has the image of another pod's pull asked for with the pod's own credentials, as Verify says; nil:
	// whatever is on the node is for all pods.
	Records *pullrecord.Store
	Verify  pullrecord.Policy
	// Progress, if set, is called with what happens, in the words of the kubelet's events. It must not block.
	Progress func(Event)
	Logger   *slog.Logger
}

// Event is something that has happened with a container's image, ready to be recorded as a Kubernetes event on the pod.
type Event struct {
	Pod       *corev1.Pod
	Container string
	Type      string // corev1.EventTypeNormal or EventTypeWarning
	Reason    string // Pulling, Pulled, Failed, InspectFailed, ErrImageNeverPull, FailedToRetrieveImagePullSecret
	Message   string
}

// Puller gets images onto the node. Safe for concurrent use.
type Puller struct {
	cfg   Config
	turns *turns

	mu      sync.Mutex
	flights map[string]*flight
}

// New makes a Puller.
func New(cfg Config) *Puller {
	if cfg.Parallel <= 0 {
		cfg.Parallel = DefaultParallel
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Puller{cfg: cfg, turns: &turns{parallel: cfg.Parallel}, flights: map[string]*flight{}}
}

// Ensure makes one attempt to have the container's image on the node as its pull policy says, and returns the runtime's
// id of it, to be given to CreateContainer. What goes wrong is an *Error; a cancelled context is that context's error,
// wrapped. An ephemeral container is passed as (*corev1.Container)(&ec.EphemeralContainerCommon).
func (p *Puller) Ensure(ctx context.Context, pod *corev1.Pod, c *corev1.Container) (imageRef string, err error) {
	ref, err := imagename.Parse(c.Image)
	a := &attempt{puller: p, pod: pod, container: c, ref: ref}
	if err != nil {
		return "", a.refuse(InvalidImageName, "InspectFailed", err,
			fmt.Sprintf("Failed to apply default image tag %q: %v", c.Image, err))
	}
	a.policy = PolicyOf(c.ImagePullPolicy, ref)
	if ref.Own() {
		a.policy = corev1.PullNever // whatever was asked for: nobody knows who answers by that name
	}
	if imagename.IsID(c.Image) {
		a.policy = corev1.PullNever // a registry knows no ids; it would be asked for a tag of a repository "sha256"
	}
	a.auths = sync.OnceValue(func() []credential { return p.credentials(ctx, pod, ref, a.say) })
	if a.policy != corev1.PullAlways {
		if id, err := a.present(ctx); id != "" || err != nil {
			return id, err
		}
	}
	if a.policy == corev1.PullNever {
		return "", a.refuse(ErrImageNeverPull, ErrImageNeverPull, nil, absent(c.Image, ref))
	}
	return a.pull(ctx)
}

// attempt is one to have a container's image.
type attempt struct {
	puller    *Puller
	pod       *corev1.Pod
	container *corev1.Container
	ref       imagename.Reference
	policy    corev1.PullPolicy
	auths     func() []credential
}

// say makes an event of the pod.
func (a *attempt) say(kind, reason, format string, args ...any) {
	if progress := a.puller.cfg.Progress; progress != nil {
		progress(Event{Pod: a.pod, Container: a.container.Name, Type: kind, Reason: reason,
			Message: fmt.Sprintf(format, args...)})
	}
}

// refuse says in an event why there is no image, and is the error.
func (a *attempt) refuse(reason, event string, err error, message string) error {
	a.say(corev1.EventTypeWarning, event, "%s", message)
	return &Error{Reason: reason, Image: a.container.Image, Err: err, Message: message}
}

// present is the id of an image that is on the node and may be used by the pod; empty if it is to be pulled.
func (a *attempt) present(ctx context.Context) (id string, err error) {
	image := a.container.Image
	id, _, err = a.puller.inspect(ctx, a.ref)
	switch {
	case ctx.Err() != nil:
		return "", cancelled(ctx, a.ref)
	case err != nil:
		return "", a.refuse(ImageInspectError, "InspectFailed", err,
			fmt.Sprintf("Failed to inspect image %q: %v", image, err))
	case id == "":
		return "", nil
	case a.puller.granted(a.ref, image, id, a.auths):
		a.say(corev1.EventTypeNormal, "Pulled",
			"Container image %q already present on machine and can be accessed by the pod", image)
		return id, nil
	case a.policy == corev1.PullNever:
		return "", a.refuse(ErrImageNeverPull, ErrImageNeverPull, nil, fmt.Sprintf(
			"Container image %q is present on the machine but cannot be accessed by the pod: with pull policy of Never its credentials cannot be verified; "+
				"use IfNotPresent, with an imagePullSecret for %s", image, a.ref.Registry))
	}
	return "", nil
}

// absent says that an image which is never pulled is not on the node, and what to do.
func absent(image string, ref imagename.Reference) string {
	switch {
	case podspec.IsToolbox(image):
		return fmt.Sprintf("Container image %q is not on this node: it is built into wherry, which can load it only into containerd (its own, or that of --container-runtime-endpoint); use another image", image)
	case ref.Own():
		return fmt.Sprintf("Container image %q is not on this node: %s", image, imagename.NotPulled(image))
	case imagename.IsID(image):
		return fmt.Sprintf("Container image %q is an image id, and no such image is here: ids are not pulled; name the image as registry/name:tag", image)
	}
	return fmt.Sprintf("Container image %q is not present with pull policy of Never", image)
}

// pull has the image pulled, in its turn and once for all who want it.
func (a *attempt) pull(ctx context.Context) (id string, err error) {
	p, image := a.puller, a.container.Image
	with, begin := a.auths(), time.Now()
	a.say(corev1.EventTypeNormal, "Pulling", "Pulling image %q", image)
	got, err := p.recorded(ctx, a.pod, a.ref, with)
	if ctx.Err() != nil {
		return "", cancelled(ctx, a.ref)
	}
	if err != nil {
		p.cfg.Logger.Debug("image not pulled", "pod", a.pod.Namespace+"/"+a.pod.Name, "container", a.container.Name,
			"image", image, "err", err)
		a.say(corev1.EventTypeWarning, "Failed", "Failed to pull image %q: %v", image, err)
		return "", err
	}
	a.say(corev1.EventTypeNormal, "Pulled",
		"Successfully pulled image %q in %v (%v including waiting). Image size: %d bytes.", image,
		got.took.Truncate(time.Millisecond), time.Since(begin).Truncate(time.Millisecond), got.size)
	return got.id, nil
}

func cancelled(ctx context.Context, ref imagename.Reference) error {
	return fmt.Errorf("pull of image %q was called off: %w", ref.Given, context.Cause(ctx))
}

// inspect gives the id and size in bytes of an image, "" if it is not on the node.
func (p *Puller) inspect(ctx context.Context, ref imagename.Reference) (id string, size uint64, err error) {
	r, err := p.cfg.Images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: spec(ref)})
	if err != nil {
		return "", 0, err
	}
	got := r.GetImage()
	if !imagename.IsID(ref.Given) && imagename.CalledByID(ref.Given, got.GetId(), namesOf(got)) {
		// the runtime took a name for the beginning of an id: policies were shown a name, so a name it is
		return "", 0, nil
	}
	return got.GetId(), got.GetSize(), nil
}

func spec(ref imagename.Reference) *runtimeapi.ImageSpec {
	return &runtimeapi.ImageSpec{Image: ref.Given, UserSpecifiedImage: ref.Given}
}

// credentials are those of the pod's pull secrets, then those of the node. A secret that is missing or unreadable is
// reported and passed over: the image may be public.
func (p *Puller) credentials(ctx context.Context, pod *corev1.Pod, ref imagename.Reference,
	say func(kind, reason, format string, args ...any)) []credential {
	var ring, node Keyring
	if p.cfg.PullSecrets != nil {
		found, missing, err := p.cfg.PullSecrets(ctx, pod)
		if err != nil {
			missing = append(missing, err.Error())
		}
		for _, s := range found {
			if err := ring.AddSecret(s); err != nil {
				missing = append(missing, err.Error())
			}
		}
		if len(missing) > 0 {
			say(corev1.EventTypeWarning, "FailedToRetrieveImagePullSecret",
				"Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.",
				strings.Join(missing, ", "))
		}
	}
	if p.cfg.DockerConfig != "" {
		if err := node.AddFile(p.cfg.DockerConfig); err != nil {
			p.cfg.Logger.Warn("node's docker config cannot be used", "path", p.cfg.DockerConfig, "err", err)
		}
	}
	var all []credential
	for _, e := range append(ring.fitting(ref), node.fitting(ref)...) {
		all = append(all, credential{e.login.auth(), e.from})
	}
	return all
}
