// Writes every request as driver.hpp reads it to the file that ECHO names, and serves none.
#include "driver.hpp"

#include <fstream>

using quiesce::Options;
using quiesce::Request;

class Echo final : public quiesce::Driver {
  public:
    std::string hello() override { return std::getenv("HELLO"); }
    std::uint64_t allocate(const std::string &slot, std::uint64_t size, const Options &options) override {
        return write({"allocate", {slot}, size, options}), 64;
    }
    std::uint64_t stage(const std::string &slot, const std::string &source, const Options &options) override {
        return write({"stage", {slot, source}, 0, options}), 64;
    }
    void free(const std::string &slot, const Options &options) override { write({"free", {slot}, 0, options}); }
    void trim(const Options &options) override { write({"trim", {}, 0, options}); }
    void create_pool(const std::string &slot, const Options &options) override {
        write({"create pool", {slot}, 0, options});
    }
    void destroy_pool(const std::string &slot) override { write({"destroy pool", {slot}, 0, {}}); }
    void launch(const Options &options) override { write({"launch", {}, 0, options}); }
    void synchronize() override {
        write({"synchronize device", {}, 0, {}});
        ledger.see(R"("seen":"device-synchronized","device":0)");
    }
    void fail(const std::string &point, std::uint64_t nth, bool foreign) override {
        write({"fail " + point, {}, nth, {}}, foreign);
    }
    bool other(const Request &request) override { return write(request), true; }

  private:
    static std::string joined(const std::vector<std::string> &words) {
        std::string text;
        for (const std::string &word : words) text += (text.empty() ? "" : ",") + word;
        return text;
    }

    void write(const Request &request, bool foreign = false) {
        const Options &o = request.options;
        echo_ << request.what << '|' << joined(request.slots) << '|' << request.number << '|' << o.kind << '|' << o.mode
              << '|' << o.stream << '|' << o.pool << '|' << o.instance << '|' << o.alignment << '|' << o.limit << '|'
              << o.size << '|' << o.arguments << '|' << joined(o.reads) << '|' << joined(o.writes) << '|' << foreign
              << std::endl;
    }

    std::ofstream echo_{std::getenv("ECHO")};
};

int main() {
    Echo echo;
    return quiesce::serve(echo);
}
