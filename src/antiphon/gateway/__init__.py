"""The providers' protocols, served: stock clients of OpenAI and Gemini talk to Antiphon's sessions."""
