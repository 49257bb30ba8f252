// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// spaces are the namespaces as they were seen last, kept outside of the store: pods that are written back into a new
// one come into namespaces with the labels that these had, and with them the Pod Security levels.
type spaces struct {
	Revision int64                        `json:"revision"` // of the newest change of any
	Labels   map[string]map[string]string `json:"labels"`   // by name
}

func spacesFile(dataDir string) string { return filepath.Join(dataDir, "namespaces.json") }

// readSpaces returns what is known, which is nothing where the file is not there or is damaged.
func readSpaces(dataDir string) spaces {
	var s spaces
	text, err := os.ReadFile(spacesFile(dataDir))
	if err != nil || json.Unmarshal(text, &s) != nil {
		return spaces{}
	}
	return s
}

// spacesOf is what there is to know of namespaces. (Pure.)
func spacesOf(list []*corev1.Namespace) spaces {
	s := spaces{Labels: map[string]map[string]string{}}
	for _, ns := range list {
		s.Labels[ns.Name] = ns.Labels
		if v, err := strconv.ParseInt(ns.ResourceVersion, 10, 64); err == nil {
			s.Revision = max(s.Revision, v)
		}
	}
	return s
}

// keepSpaces is a loop that writes the file whenever it has changed.
func (s *Server) keepSpaces(factory informers.SharedInformerFactory) func(context.Context) error {
	all := factory.Core().V1().Namespaces()
	informer, lister := all.Informer(), all.Lister()
	return func(ctx context.Context) error {
		changed := make(chan struct{}, 1)
		poke := func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { poke() }, UpdateFunc: func(any, any) { poke() }, DeleteFunc: func(any) { poke() }})
		if err != nil && ctx.Err() != nil {
			return nil // the informer ended with it, a moment before
		}
		if err != nil {
			return err
		}
		defer func() { _ = informer.RemoveEventHandler(handler) }()
		if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
			return nil
		}
		var written []byte
		for {
			if list, err := lister.List(labels.Everything()); err == nil {
				written = s.writeSpaces(spacesOf(list), written)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
			}
		}
	}
}

// writeSpaces writes the file unless it is as it was written before, and returns what is in it.
func (s *Server) writeSpaces(now spaces, written []byte) []byte {
	text, err := json.Marshal(now)
	if err == nil && !bytes.Equal(text, written) {
		err = writeFile(spacesFile(s.opts.DataDir), text, 0o600)
	}
	if err != nil {
		s.log.Warn("cannot record the namespaces' labels, for the case that the store is lost", "err", err)
		return written
	}
	return text
}
