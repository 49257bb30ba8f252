// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"unsafe"

	"github.com/containerd/containerd/v2/plugins"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// AttachRunning joins streams with those of a running container whose output is not kept (see [Runtime.KeepsOutput]),
// from now on. It returns when its output has ended, or ctx. It closes out and errOut, and reads from in until that
// ends.
//
// It is for containers without a tap (a version before this one started them, or there was no room for it), and is what
// the CRI's own server of streams calls for a client that comes to its port, without the port.
func (r *Runtime) AttachRunning(ctx context.Context, containerID string, in io.Reader, out, errOut io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize) error {
	return r.streams.Attach(ctx, containerID, in, out, errOut, tty, resize)
}

// streamsOf finds what the CRI's server of streams calls. containerd has no name for it outside of its packages, so it
// is looked up by its fields' names: another version of containerd that has others is logged at the start, and by a
// test.
func streamsOf(d *daemon) (_ streaming.Runtime, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("the CRI's streams: %w", err)
		}
	}()
	cri, err := instance[any](d, plugins.GRPCPlugin, "cri")
	if err != nil {
		return nil, err
	}
	v := reflect.ValueOf(cri)
	for _, name := range []string{"Closer", "streamServer", "runtime", "Runtime"} {
		for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct || !v.CanAddr() {
			return nil, fmt.Errorf("%s is looked for in %v", name, v.Kind())
		}
		if v = v.FieldByName(name); !v.IsValid() {
			return nil, fmt.Errorf("there is no field %s", name)
		}
		v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem() // also of one that is not exported
	}
	streams, ok := v.Interface().(streaming.Runtime)
	if !ok || streams == nil {
		return nil, errors.New("they are of another kind")
	}
	return streams, nil
}
