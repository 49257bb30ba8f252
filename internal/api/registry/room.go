// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
)

// Room is what the API server asks its store about room for writes. Its methods are quick and safe for concurrent use.
type Room interface {
	// Full says in words for a user why only what must be written should be, "" if there is room for everything. Soon
	// says that it may be over in a second.
	Full() (why string, soon bool)
	// MakeRoom says that the store has refused a write for want of room.
	MakeRoom()
}

// guard keeps the last part of the store free for what must be written whatever happens: deletions that take time,
// statuses, leases, all that the server's own parts write (RS-03). A nil guard lets everything through.
type guard struct {
	room  Room
	codec runtime.Codec
}

// stored is a write as the guard judges it.
type stored struct {
	insider       bool // one of the server's parts writes it
	leaving       bool // it begins the object's deletion
	before, after int  // bytes; before is 0 for an object that is new
}

// passes reports whether a write may go into a full store: what does not make an object larger does, because earlier
// versions are dropped. (Pure.)
func (w stored) passes() bool {
	return w.insider || w.before > 0 && (w.leaving || w.after <= w.before)
}

// create judges an object that is to be created.
func (g *guard) create(ctx context.Context) error {
	if g == nil {
		return nil
	}
	why, soon := g.room.Full()
	if why == "" || (stored{insider: FromInside(ctx)}).passes() {
		return nil
	}
	return storeFull(why, soon)
}

// updating judges what update makes of an object.
func (g *guard) updating(ctx context.Context, update storage.UpdateFunc) storage.UpdateFunc {
	if g == nil {
		return update
	}
	return func(old runtime.Object, seen storage.ResponseMeta) (runtime.Object, *uint64, error) {
		why, soon := g.room.Full()
		if why == "" || FromInside(ctx) {
			return update(old, seen)
		}
		w := stored{}
		if seen.ResourceVersion > 0 {
			w.before = g.size(old)
		}
		stays := !isLeaving(old)
		obj, ttl, err := update(old, seen)
		if err != nil {
			return obj, ttl, err
		}
		w.leaving, w.after = stays && isLeaving(obj), g.size(obj)
		if !w.passes() {
			return nil, nil, storeFull(why, soon)
		}
		return obj, ttl, nil
	}
}

// refused is what to say when the store itself had no room.
func (g *guard) refused() error {
	if g == nil {
		return insufficient("etcd has no room: it has raised its alarm NOSPACE; compact and defragment it, or raise its quota, and lift the alarm with etcdctl")
	}
	g.room.MakeRoom()
	why, soon := g.room.Full()
	if why == "" { // it has been made meanwhile
		why, soon = "the store had no room", true
	}
	return storeFull(why, soon)
}

// size is how many bytes an object takes in the store, without its key.
func (g *guard) size(obj runtime.Object) int {
	n := &countingWriter{w: nowhere{}}
	if err := g.codec.Encode(obj, n); err != nil {
		return maxObjectBytes // what cannot be encoded is refused by the storage, with the reason
	}
	return n.n
}

type nowhere struct{}

// Write implements io.Writer.
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

func isLeaving(obj runtime.Object) bool {
	m, err := meta.Accessor(obj)
	return err == nil && m.GetDeletionTimestamp() != nil
}

// FromInside reports whether a request comes from a part of the server or from a node. Pods have service accounts, and
// are nobody's part.
func FromInside(ctx context.Context) bool {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return true
	}
	name := u.GetName()
	return strings.HasPrefix(name, "system:") && name != user.Anonymous &&
		!strings.HasPrefix(name, serviceaccount.ServiceAccountUsernamePrefix)
}

// storeFull is the refusal of a write that would need room.
func storeFull(why string, soon bool) error {
	if soon {
		return apierrors.NewTooManyRequests(why, 1)
	}
	return insufficient(why)
}

func insufficient(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: "InsufficientStorage",
		Message: message}}
}
