// A runtime that is not Kokkos, behind the same interface: LEAVES says what it leaves on the heap.
#include "runtime.hpp"

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace {

struct Singleton {
    char state[176] = {};
};

Singleton *volatile pointed_to; // volatile: nobody reads it, and what nobody reads is not made
std::unique_ptr<Singleton> owned_by_a_static_object; // freed at the exit, as Kokkos' maps are
std::map<int, std::string> configuration;
std::vector<std::unique_ptr<Singleton>> instances_seen;

bool leaves(const char *what) { return std::strcmp(std::getenv("LEAVES"), what) == 0; }

} // namespace

namespace runtime {

std::string version() { return "9.9.9"; }
const void *address() { return reinterpret_cast<const void *>(&finalize); }
bool initializes_again() { return true; }
bool has_instances() { return true; }

void initialize() {
    for (int i = 0; i < 20; i++) configuration[i] = std::string(100, 'x');
    if (leaves("singleton") && pointed_to == nullptr) pointed_to = new Singleton;
    if (leaves("malloc") && pointed_to == nullptr)
        pointed_to = static_cast<Singleton *>(std::malloc(sizeof(Singleton)));
    if (leaves("array")) pointed_to = new Singleton[3];
    if (leaves("one each time")) pointed_to = new Singleton;
    if (!owned_by_a_static_object) owned_by_a_static_object = std::make_unique<Singleton>();
}

void finalize() {
    struct alignas(64) Wide { char state[64]; };
    if (leaves("aligned")) pointed_to = reinterpret_cast<Singleton *>(new Wide);
}

void partition(const Instance *, unsigned count, Instance *const *made) {
    for (unsigned i = 0; i < count; i++) *reinterpret_cast<Singleton **>(made[i]->room) = new Singleton;
}

void destroy(Instance &instance) {
    Singleton *held = *reinterpret_cast<Singleton **>(instance.room);
    if (leaves("instances")) pointed_to = held;
    else delete held;
}

void create_policy(const Instance *) {
    if (leaves("policies")) pointed_to = new Singleton;
    instances_seen.push_back(std::make_unique<Singleton>());
    instances_seen.clear();
}

} // namespace runtime
