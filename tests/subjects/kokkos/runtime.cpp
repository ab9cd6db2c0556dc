// A runtime that is not Kokkos, behind the same interface: what it leaves on the heap is chosen when it is compiled.
#include "runtime.hpp"

#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace {

struct Singleton {
    char state[176] = {};
};

Singleton *pointed_to;
std::unique_ptr<Singleton> owned_by_a_static_object; // freed at the exit, as Kokkos' maps are
std::map<int, std::string> configuration;
std::vector<std::unique_ptr<Singleton>> instances_seen;

} // namespace

namespace runtime {

std::string version() { return "9.9.9"; }
const void *address() { return reinterpret_cast<const void *>(&finalize); }
bool initializes_again() { return true; }
bool has_instances() { return true; }

void initialize() {
    for (int i = 0; i < 20; i++) configuration[i] = std::string(100, 'x');
#if defined(LEAKS_SINGLETON)
    if (pointed_to == nullptr) pointed_to = new Singleton;
#elif defined(LEAKS_BY_MALLOC)
    if (pointed_to == nullptr) pointed_to = static_cast<Singleton *>(std::malloc(sizeof(Singleton)));
#elif defined(LEAKS_ARRAY)
    pointed_to = new Singleton[3];
#elif defined(LEAKS_EACH_TIME)
    pointed_to = new Singleton;
#else
    if (!owned_by_a_static_object) owned_by_a_static_object = std::make_unique<Singleton>();
#endif
}

void finalize() {
#ifdef LEAKS_ALIGNED
    struct alignas(64) Wide { char state[64]; };
    pointed_to = reinterpret_cast<Singleton *>(new Wide);
#endif
}

void partition(const Instance *, unsigned count, Instance *const *made) {
    for (unsigned i = 0; i < count; i++) *reinterpret_cast<Singleton **>(made[i]->room) = new Singleton;
}

void destroy(Instance &instance) {
    Singleton *held = *reinterpret_cast<Singleton **>(instance.room);
#ifndef LEAKS_INSTANCES
    delete held;
#else
    pointed_to = held;
#endif
}

void create_policy(const Instance *) {
#ifdef LEAKS_POLICIES
    pointed_to = new Singleton;
#else
    instances_seen.push_back(std::make_unique<Singleton>());
    instances_seen.clear();
#endif
}

} // namespace runtime
