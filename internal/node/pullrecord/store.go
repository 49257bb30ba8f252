// SPDX-License-Identifier: Apache-2.0

package pullrecord

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/wherryproject/wherry/internal/imagename"
)

// Store keeps notes and records as files below a folder, which only root can read. Safe for concurrent use.
type Store struct {
	pulling, pulled string // folders: notes by image name, records by image id

	mu    sync.Mutex
	begun map[string]int // pulls under way, by image name
}

// Open makes the folders where they are missing.
func Open(dir string) (*Store, error) {
	s := &Store{pulling: filepath.Join(dir, "pulling"), pulled: filepath.Join(dir, "pulled"), begun: map[string]int{}}
	for _, d := range []string{s.pulling, s.pulled} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("folder of image pull records: %w", err)
		}
	}
	return s, nil
}

// note is what is kept of a pull before it begins.
type note struct {
	Image string `json:"image"`
}

// Begin notes that an image is going to be pulled. Every Begin that succeeds is followed by Done, Failed or Left.
func (s *Store) Begin(image imagename.Reference) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := write(file(s.pulling, image.Full), note{image.Full}); err != nil {
		return fmt.Errorf("note of the pull of image %s: %w", image.Full, err)
	}
	s.begun[image.Full]++
	return nil
}

// Done records that a registry gave the image out, and to whom. If that cannot be written the note stays: the image
// does not pass for one that was not pulled.
func (s *Store) Done(image imagename.Reference, id string, access Access, now time.Time) error {
	if err := s.Learn(image, id, access, now); err != nil {
		return err
	}
	return s.Failed(image)
}

// Failed takes the note of a pull that came to nothing away, if there is no other of the same image.
func (s *Store) Failed(image imagename.Reference) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended(image) > 0 {
		return nil
	}
	return remove(file(s.pulling, image.Full))
}

// Left is for a pull that nobody waits for any more: the runtime may come to its end with it, so its note stays until
// the next pull of the image, or the next start.
func (s *Store) Left(image imagename.Reference) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended(image)
}

// ended counts a pull out and returns how many of the image are left.
func (s *Store) ended(image imagename.Reference) int {
	if s.begun[image.Full]--; s.begun[image.Full] > 0 {
		return s.begun[image.Full]
	}
	delete(s.begun, image.Full)
	return 0
}

// Learn adds an access to the record of an image.
func (s *Store) Learn(image imagename.Reference, id string, access Access, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	have, err := s.record(id)
	if err != nil || have == nil {
		have = &Record{ID: id} // one that cannot be read is replaced: what it held is not known
	}
	next := have.add(image, access)
	next.Updated = now
	if err := write(file(s.pulled, id), next); err != nil {
		return fmt.Errorf("record of the pull of image %s: %w", image.Full, err)
	}
	return nil
}

// Look gives what is known of an image: the record of its id, nil if there is none, and whether a pull of its name has
// begun.
func (s *Store) Look(image imagename.Reference, id string) (record *Record, begun bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if record, err = s.record(id); err != nil || record != nil {
		return record, false, err
	}
	switch _, err := os.Stat(file(s.pulling, image.Full)); {
	case err == nil:
		return nil, true, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, s.begun[image.Full] > 0, nil
	default:
		return nil, false, err
	}
}

func (s *Store) record(id string) (*Record, error) {
	var r Record
	switch err := read(file(s.pulled, id), &r); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case r.ID != id:
		return nil, fmt.Errorf("the record of image %s is one of %q", id, r.ID)
	}
	return &r, nil
}

// Conclude decides about pulls that an earlier process began: an image that is there was pulled by it, with
// credentials that nobody knows, and what is not there was not. names are those of the images on the node, with the id
// of each.
func (s *Store) Conclude(names map[string]string, now time.Time) error {
	entries, err := os.ReadDir(s.pulling)
	if err != nil {
		return fmt.Errorf("notes of image pulls: %w", err)
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(s.pulling, e.Name())
		var n note
		if strings.HasPrefix(e.Name(), unfinished) || read(path, &n) != nil { // cut off before the pull began
			errs = append(errs, remove(path))
			continue
		}
		image, err := imagename.Parse(n.Image)
		if err != nil {
			errs = append(errs, remove(path))
			continue
		}
		if id := idOf(names, image); id != "" {
			if err := s.Learn(image, id, Access{}, now); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		errs = append(errs, remove(path))
	}
	return errors.Join(errs...)
}

// idOf finds an image under any of the forms of its name that a runtime lists.
func idOf(names map[string]string, image imagename.Reference) string {
	forms := []string{image.Full}
	if image.Digest != "" { // with a tag besides, runtimes keep the digest
		forms = append(forms, repository(image)+"@"+image.Digest)
	}
	for _, form := range forms {
		if id := names[form]; id != "" {
			return id
		}
	}
	return ""
}

// Prune takes away the records of images that were not on the node at a time, unless they have changed since.
func (s *Store) Prune(present map[string]bool, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := os.ReadDir(s.pulled)
	if err != nil {
		return fmt.Errorf("records of image pulls: %w", err)
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(s.pulled, e.Name())
		var r Record
		if err := read(path, &r); err == nil && !present[r.ID] && r.Updated.Before(at) {
			errs = append(errs, remove(path))
		}
	}
	return errors.Join(errs...)
}

// file is where something of a name is kept: names have slashes, and may be longer than those of files.
func file(dir, name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(dir, hex.EncodeToString(sum[:])+".json")
}

// unfinished begins the names of files that are being written.
const unfinished = ".new-"

// write puts a file in place as a whole, on the disk before it is seen.
func write(path string, what any) error {
	data, err := json.Marshal(what)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), unfinished) // for its owner only
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func read(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
